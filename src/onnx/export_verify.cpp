#include "onnx/export_verify.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/hash.h"
#include "pantala/error.h"
#include "pantala/onnx.h"
#include "pantala/session.h"

namespace pantala::onnx {

namespace {

constexpr double kTolerance = 1e-4;  // of the largest magnitude

// What the outputs do not depend on may be among the weights.
Session session_of(const Graph& graph, const Weights& weights) {
  Session session = build_inference_session(graph);
  session.load_weights(weights, {.strict = false});
  return session;
}

// Floats of [-1, 1), integers of [0, limit).
Literal drawn(const Leaf& input, std::int64_t limit) {
  Literal value(input.value.type());
  for (std::int64_t k = 0; k < value.numel(); ++k) {
    const std::uint64_t bits = hash_combine(fnv1a(input.name), static_cast<std::uint64_t>(k)) >> 40;
    const auto at = static_cast<std::size_t>(k);
    if (value.is_float())
      value.f()[at] = static_cast<double>(bits) * 0x1p-23 - 1;
    else
      value.i()[at] = static_cast<std::int64_t>(bits) % (value.dtype() == boolean ? 2 : limit);
  }
  return value;
}

void run(Session& session, const std::vector<Leaf>& inputs, std::int64_t limit) {
  for (const Leaf& input : inputs) session.set_input(input.name, drawn(input, limit));
  session.step();
}

// Integers may be indices, and nothing says of how many: large ones are tried first.
void run_both(Session& graph, Session& file, const std::vector<Leaf>& inputs) {
  for (std::int64_t limit = 1000; limit >= 1; limit /= 10) try {
      run(graph, inputs, limit);
      run(file, inputs, limit);
      return;
    } catch (const ValueError&) {
      if (limit == 1) throw;
    }
}

// "" or what is different.
std::string difference(const Literal& expected, const Literal& got) {
  if (expected.type() != got.type())
    return fmt::format("{} in the graph, {} in the file", expected.type().str(), got.type().str());
  double largest = 1e-30;
  for (std::int64_t k = 0; k < expected.numel(); ++k)
    if (std::isfinite(expected.at(k))) largest = std::max(largest, std::fabs(expected.at(k)));
  const double bound = expected.is_float() ? kTolerance * largest : 0;
  for (std::int64_t k = 0; k < expected.numel(); ++k) {
    const double a = expected.at(k), b = got.at(k);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    if (!(std::fabs(a - b) <= bound))
      return fmt::format("element {} is {} in the graph and {} in the file", k, a, b);
  }
  return "";
}

}  // namespace

void verify_export(const Graph& graph, const Weights& weights, const FileToVerify& file,
                   const std::map<std::string, std::int64_t>& sizes) {
  const Model model = import_model(file.bytes, file.name, {.sizes = sizes}, file.folder);
  Session expected = session_of(graph, weights), got = session_of(model.graph, model.weights);
  run_both(expected, got, model.graph.leaves(LeafKind::input));
  std::vector<std::string> wrong;
  for (const auto& [output, value] : graph.outputs()) {
    const std::string text = difference(expected.output(output), got.output(output));
    if (!text.empty()) wrong.push_back(fmt::format("{}: {}", output, text));
  }
  if (!wrong.empty())
    throw InternalError(
        fmt::format("{}: not written, it would not compute what the graph does:\n  {}", file.name,
                    fmt::join(wrong, "\n  ")));
}

}  // namespace pantala::onnx
