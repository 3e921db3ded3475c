#include "onnx/operator_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include "base/text.h"
#include "io/file.h"
#include "onnx/proto.h"
#include "pantala/error.h"
#include "pantala/onnx.h"
#include "pantala/session.h"

namespace pantala::tests {

namespace {

namespace fs = std::filesystem;
namespace pb = ::onnx;

// The expected type tells bfloat16 from the 16-bit integers that carry it in some files.
Literal read_tensor(const fs::path& path, const pb::ValueInfoProto& info) {
  pb::TensorProto tensor;
  if (!tensor.ParseFromString(io::read_file(path)))
    throw ParseError(path.string() + " is no tensor");
  if (tensor.data_type() == pb::TensorProto::UINT16 &&
      info.type().tensor_type().elem_type() == pb::TensorProto::BFLOAT16)
    tensor.set_data_type(pb::TensorProto::BFLOAT16);
  return onnx::tensor_literal(tensor, {path.string(), {}});
}

// The inputs that are tensors of types that Pantala has.
std::map<std::string, Literal> read_inputs(const fs::path& folder, const pb::GraphProto& graph) {
  std::map<std::string, Literal> inputs;
  int k = 0;
  for (const pb::ValueInfoProto& input : graph.input()) {
    const fs::path path = folder / "test_data_set_0" / fmt::format("input_{}.pb", k++);
    if (fs::exists(path) && input.type().has_tensor_type() &&
        onnx::dtype_of(input.type().tensor_type().elem_type()))
      inputs.emplace(input.name(), read_tensor(path, input));
  }
  return inputs;
}

// The names that the error asks to be bound.
std::vector<std::string> asked_for(const std::string& message) {
  constexpr std::string_view kBegin = "bind '", kEnd = "' to its value";
  std::vector<std::string> names;
  for (std::size_t at = message.find(kBegin); at != std::string::npos;
       at = message.find(kBegin, at + 1)) {
    const std::size_t begin = at + kBegin.size(), end = message.find(kEnd, begin);
    if (end != std::string::npos) names.push_back(message.substr(begin, end - begin));
  }
  return names;
}

// Whether the file says all of them.
bool has_sizes(const pb::ValueInfoProto& input) {
  const pb::TypeProto::Tensor& type = input.type().tensor_type();
  return type.has_shape() && std::all_of(type.shape().dim().begin(), type.shape().dim().end(),
                                         [](const auto& dim) { return dim.has_dim_value(); });
}

onnx::Model import_case(const fs::path& path, const pb::GraphProto& graph,
                        const std::map<std::string, Literal>& inputs) {
  onnx::ImportOptions options;
  for (const pb::ValueInfoProto& input : graph.input())
    if (inputs.contains(input.name()) && !has_sizes(input))
      options.shapes.emplace(input.name(), inputs.at(input.name()).shape());
  for (int attempt = 0;; ++attempt) {
    try {
      return onnx::import_model(path, options);
    } catch (const UnsupportedError& error) {
      const std::vector<std::string> names = asked_for(error.what());
      if (names.empty() || attempt > graph.input_size()) throw;
      for (const std::string& name : names) options.bind.insert_or_assign(name, inputs.at(name));
    }
  }
}

// Tests whose expected values are rounded to four digits, or were computed with 3.1415 for pi.
constexpr std::string_view kRough[] = {"test_averagepool_2d_ceil_last_window_starts_on_pad",
                                       "test_hannwindow*", "test_hammingwindow*",
                                       "test_blackmanwindow*"};

// Relative to the element; with a little more for elements that are small beside the others.
struct Bound {
  double relative = 1e-4, of_largest = 1e-6;
};
// ONNX's own bound is 1e-3; half floats cannot be nearer than their last bits.
Bound bound_of(const fs::path& folder, DType dtype) {
  if (dtype == bf16) return {2e-2, 4e-3};
  if (dtype == f16) return {2e-3, 1e-3};
  for (const std::string_view pattern : kRough)
    if (glob_match(pattern, folder.filename().string())) return {1e-3, 1e-6};
  return {};
}

std::string difference(const Literal& got, const Literal& want, const std::string& name,
                       const Bound& allowed) {
  if (!(got.type() == want.type()))
    return fmt::format("{}: {} instead of {}", name, got.type().str(), want.type().str());
  double largest = 0;
  for (const double value : want.to_doubles())
    if (std::isfinite(value)) largest = std::max(largest, std::fabs(value));
  for (std::int64_t k = 0; k < want.numel(); ++k) {
    const double a = got.at(k), b = want.at(k);
    if (std::isnan(a) && std::isnan(b)) continue;
    const double bound =
        want.is_float() ? allowed.relative * std::fabs(b) + allowed.of_largest * largest : 0;
    if (!(a == b || std::fabs(a - b) <= bound))
      return fmt::format("{}: element {} is {} instead of {}", name, k, a, b);
  }
  return "";
}

Outcome compare(const fs::path& folder, const pb::GraphProto& graph, const onnx::Model& model,
                const std::map<std::string, Literal>& inputs) {
  Session session = build_inference_session(model.graph, {.device = "cpu", .threads = 1});
  session.load_weights(model.weights);
  const std::vector<std::string> read = session.inputs();
  for (const auto& [name, value] : inputs)
    if (std::find(read.begin(), read.end(), name) != read.end()) session.set_input(name, value);
  session.step();
  Outcome outcome;
  for (int k = 0; k < graph.output_size(); ++k) {
    const Literal want =
        read_tensor(folder / "test_data_set_0" / fmt::format("output_{}.pb", k), graph.output(k));
    const std::string differs = difference(session.output(graph.output(k).name()), want,
                                           graph.output(k).name(), bound_of(folder, want.dtype()));
    if (!differs.empty()) outcome.reasons.push_back(differs);
  }
  if (!outcome.reasons.empty()) outcome.kind = Outcome::Kind::failed;
  return outcome;
}

// "file: 2 nodes cannot be read:\n  Op 'node': reason\n ..." as "Op: reason" a line.
std::vector<std::string> reasons_in(const std::string& message) {
  std::istringstream lines(message);
  std::vector<std::string> reasons;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("  ")) continue;
    const std::size_t quote = line.find(" '"), end = line.find("': ");
    reasons.push_back(end == std::string::npos ? line
                                               : line.substr(2, quote - 2) + line.substr(end + 1));
  }
  if (reasons.empty()) reasons.push_back("File" + message.substr(message.find(": ")));
  return reasons;
}

}  // namespace

std::vector<fs::path> operator_cases(const fs::path& data) {
  std::vector<fs::path> cases;
  for (const fs::directory_entry& suite : fs::directory_iterator(data))
    if (suite.is_directory())
      for (const fs::directory_entry& entry : fs::directory_iterator(suite))
        if (fs::exists(entry.path() / "model.onnx") && fs::exists(entry.path() / "test_data_set_0"))
          cases.push_back(entry.path());
  std::sort(cases.begin(), cases.end());
  return cases;
}

Outcome run_operator_case(const fs::path& folder) {
  try {
    const fs::path path = folder / "model.onnx";
    const pb::GraphProto graph = onnx::read_model(path).graph();
    const std::map<std::string, Literal> inputs = read_inputs(folder, graph);
    return compare(folder, graph, import_case(path, graph, inputs), inputs);
  } catch (const UnsupportedError& error) {
    return {Outcome::Kind::unsupported, reasons_in(error.what())};
  } catch (const std::exception& error) { return {Outcome::Kind::failed, {error.what()}}; }
}

// "| `pattern`, `pattern` | reason |" under the heading.
std::vector<Exemption> read_exemptions(const fs::path& document) {
  std::vector<Exemption> all;
  for (const std::string& line : section(document, "Exempt operator tests")) {
    const std::size_t bar = line.find(" | ");
    if (!line.starts_with("| `") || bar == std::string::npos) continue;
    for (const std::string& pattern : quoted_words(line.substr(0, bar)))
      all.push_back({pattern, line.substr(bar + 3)});
  }
  return all;
}

std::vector<std::string> section(const fs::path& document, std::string_view heading) {
  std::ifstream file(document);
  std::vector<std::string> lines;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("## "))
      inside = line.substr(3) == heading;
    else if (inside)
      lines.push_back(line);
  }
  return lines;
}

std::vector<std::string> quoted_words(std::string_view text) {
  std::vector<std::string> words;
  for (std::size_t begin = text.find('`'); begin != std::string_view::npos;) {
    const std::size_t end = text.find('`', begin + 1);
    if (end == std::string_view::npos) break;
    words.emplace_back(text.substr(begin + 1, end - begin - 1));
    begin = text.find('`', end + 1);
  }
  return words;
}

}  // namespace pantala::tests
