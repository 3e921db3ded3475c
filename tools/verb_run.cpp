// pantala run: an ONNX model on arrays from files; its outputs become files.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "base/doing.h"
#include "base/text.h"
#include "io/npy.h"
#include "pantala/error.h"
#include "pantala/onnx.h"
#include "pantala/session.h"
#include "tools/command.h"
#include "tools/compile_flags.h"
#include "tools/onnx/arguments.h"
#include "tools/options.h"
#include "tools/process.h"

namespace pantala::tools {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct RunOptions {
  std::string model, output;
  std::vector<std::string> inputs, binds, sizes;
  std::string device = "cpu";
  int threads = 0;
  bool json = false;
};

// All inputs that no file was given for.
void check_complete(const RunOptions& options, const Graph& graph,
                    const std::map<std::string, io::HostArray>& arrays) {
  std::vector<std::string> missing;
  for (const Leaf& input : graph.leaves(LeafKind::input))
    if (!arrays.contains(input.name))
      missing.push_back(
          fmt::format("--input {}=FILE.npy ({})", input.name, input.value.type().str()));
  if (!missing.empty())
    throw TypeError(fmt::format("{}: missing: {}", options.model, fmt::join(missing, ", ")));
}

// NumPy's bools are read as bytes, its numbers are f64 unless told, and it has no bf16: all become
// elements of the input's type, rounded.
Literal as_input(const io::HostArray& array, const Type& type, const std::string& name) {
  Literal literal(type);
  std::visit(
      [&](const auto& values) {
        for (std::size_t k = 0; k < values.size(); ++k) {
          if (type.dtype != boolean)
            literal.f()[k] = static_cast<double>(values[k]);
          else if (values[k] != 0 && values[k] != 1)
            throw ValueError(fmt::format("--input {}: element {} is {}; a bool is 0 or 1", name, k,
                                         static_cast<double>(values[k])));
          else
            literal.i()[k] = static_cast<std::int64_t>(values[k]);
        }
      },
      array.values);
  return literal;
}

void set_inputs(Session& session, const Graph& graph,
                const std::map<std::string, io::HostArray>& arrays) {
  for (const auto& [name, array] : arrays) {
    const Tensor input = graph.leaf(name);
    if (input.shape() != array.shape)
      throw TypeError(fmt::format("--input {}: the model takes {}, the file holds {}", name,
                                  input.type().str(), Type{array.dtype(), array.shape}.str()));
    const bool reals = is_float(array.dtype()) && is_float(input.dtype());
    if (input.dtype() == boolean || (reals && array.dtype() != input.dtype())) {
      session.set_input(name, as_input(array, input.type(), name));
      continue;
    }
    std::visit([&, &id = name](const auto& values) { session.set_input(id, std::span(values)); },
               array.values);
  }
}

// NumPy has no bf16.
Literal as_numpy(const Literal& value) {
  if (value.dtype() != f16 && value.dtype() != bf16) return value;
  return Literal::floats(value.shape(), value.to_doubles(), f32);
}

// A name of an output may be a path.
std::string file_name(const std::string& output) {
  std::string name = output;
  for (char& c : name)
    if (c == '/' || c == '\\' || c == '\0') c = '_';
  return (name.starts_with(".") ? "_" + name : name) + ".npy";
}

void write_array(const fs::path& path, const Literal& value) {
  Weights one;
  one.set("value", value);
  io::write_npy(path, value.type(), one.bytes("value"));
}

struct Written {
  std::string name;
  Type type;
  fs::path file;
};

std::vector<Written> write_outputs(const Session& session, const Graph& graph,
                                   const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw IoError(fmt::format("{}: cannot be made: {}", folder.string(), error.message()));
  std::vector<Written> written;
  std::set<std::string> names;
  for (const auto& [name, tensor] : graph.outputs()) {
    const std::string file = file_name(name);
    if (!names.insert(file).second)
      throw TypeError(fmt::format("two outputs would be written to {}", (folder / file).string()));
    const Literal value = as_numpy(session.output(name));
    write_array(folder / file, value);
    written.push_back({name, value.type(), folder / file});
  }
  return written;
}

std::string report(const RunOptions& options, bool cached, const std::vector<Written>& written) {
  if (!options.json) {
    std::string text;
    for (const Written& output : written)
      text += fmt::format("{} {} -> {}\n", output.name, output.type.str(), output.file.string());
    return text;
  }
  Json outputs = Json::array();
  for (const Written& output : written)
    outputs.push_back({{"name", output.name},
                       {"dtype", dtype_name(output.type.dtype)},
                       {"shape", output.type.shape.vec()},
                       {"file", output.file.string()}});
  return Json{{"model", options.model}, {"outputs", outputs}, {"cached", cached}}.dump() + "\n";
}

// With a plan that an earlier run of the same model has left, if there is one.
Session open_session(const Graph& graph, const RunOptions& options) {
  const Doing doing("compiling " + options.model);
  const CompileOptions compile{.device = options.device, .threads = options.threads};
  const fs::path cache = plan_cache();
  return cache.empty() ? build_inference_session(graph, compile)
                       : build_inference_session_cached(graph, compile, cache / "run-{key}.plan");
}

onnx::Model read_model(const RunOptions& options, const onnx::ImportOptions& import) {
  const Doing doing("reading " + options.model);
  return onnx::import_model(options.model, import);
}

std::map<std::string, io::HostArray> read_arrays(const char* option,
                                                 const std::vector<std::string>& given) {
  const Doing doing(fmt::format("reading what {} names", option));
  return named_arrays(option, given);
}

std::string run_model(const RunOptions& options) {
  const std::map<std::string, io::HostArray> arrays = read_arrays("--input", options.inputs);
  onnx::ImportOptions import{.sizes = named_sizes("--size", options.sizes)};
  for (const auto& [name, array] : read_arrays("--bind", options.binds)) {
    if (arrays.contains(name))
      throw TypeError(fmt::format("'{}' is given by --input and by --bind", name));
    import.bind.emplace(name, literal_of(array));
  }
  for (const auto& [name, array] : arrays) import.shapes.emplace(name, array.shape);
  const onnx::Model model = read_model(options, import);
  check_complete(options, model.graph, arrays);
  Session session = open_session(model.graph, options);
  const Doing doing("running " + options.model);
  session.load_weights(model.weights, {.strict = false});  // some may be of no output
  set_inputs(session, model.graph, arrays);
  session.step();
  return report(options, session.report().cached(),
                write_outputs(session, model.graph, options.output));
}

}  // namespace

Run run_verb(VerbOptions& verb) {
  const auto options = std::make_shared<RunOptions>();
  verb.add_option("MODEL", options->model, "An ONNX file")->required();
  verb.add_option("--input", options->inputs, "NAME=FILE.npy: the values of an input");
  verb.add_option("--output", options->output, "The folder for NAME.npy of every output")
      ->required();
  verb.add_option("--bind", options->binds,
                  "NAME=FILE.npy: an input whose values decide shapes, as a constant");
  verb.add_option("--size", options->sizes,
                  "NAME=N: a symbolic size of the model; sizes of inputs follow from their files");
  add_device_flag(verb, options->device, "cpu");
  verb.add_option("--threads", options->threads, "Threads that compute; 0: one per CPU")
      ->between(0, 1024)
      ->capture_default_str();
  verb.add_flag("--json", options->json, "Tell what was written as JSON");
  return [options] {
    fmt::print("{}", run_model(*options));
    return 0;
  };
}

}  // namespace pantala::tools
