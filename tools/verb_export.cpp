// pantala export: the model of a run, or of the zoo with weights from a file, as an ONNX file.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "pantala/error.h"
#include "pantala/onnx.h"
#include "pantala/session.h"
#include "pantala/zoo/presets.h"
#include "tools/command.h"
#include "tools/train/model.h"
#include "tools/train/trained.h"

namespace pantala::tools {

namespace {

namespace fs = std::filesystem;

struct ExportVerbOptions {
  std::string source, out, checkpoint = "last", weights;
  std::int64_t batch = 1, opset = onnx::ExportOptions{}.opset;
  bool json = false;
};

struct Exported {
  Graph graph;
  Weights weights;
  std::string from;  // for the report
};

// What the run's evaluation uses: averages of the weights where it has some.
Weights evaluation_weights(const Session& session) {
  Weights weights = session.weights();
  const std::vector<std::string> states = session.states();
  for (const std::string& parameter : session.parameters()) {
    const std::string average = "ema." + parameter;
    if (std::find(states.begin(), states.end(), average) != states.end())
      weights.set(parameter, session.state(average));
  }
  return weights;
}

Exported of_run(const ExportVerbOptions& options) {
  if (!options.weights.empty())
    throw TypeError("--weights is for a model of the zoo; a run has its own (--checkpoint)");
  Trained trained = open_trained(open_run_folder(options.source), options.checkpoint, 0);
  const ModelFactory factory =
      model_factory(trained.config, model_shape(trained.config, trained.profile));
  return {.graph = factory(options.batch, Phase::evaluation),
          .weights = evaluation_weights(trained.trainer.session()),
          .from = fmt::format("{}, {}", options.source, trained.checkpoint)};
}

// Through a session: names are checked as always, and other float types are converted.
Exported of_preset(const ExportVerbOptions& options) {
  const zoo::Preset& preset = zoo::preset(options.source);
  if (options.weights.empty())
    throw TypeError(fmt::format("model {} needs --weights FILE.safetensors", preset.name));
  Graph graph = preset.make({.batch = options.batch, .training = false}).graph;
  Session session = build_inference_session(graph);
  session.load_weights(Weights::open(options.weights));
  Weights weights = session.weights();
  return {.graph = std::move(graph),
          .weights = std::move(weights),
          .from = fmt::format("{}, {}", preset.name, options.weights)};
}

Exported open_source(const ExportVerbOptions& options) {
  std::error_code ignored;
  if (fs::exists(options.source, ignored)) return of_run(options);
  const std::vector<std::string> names = zoo::preset_names();
  if (std::find(names.begin(), names.end(), options.source) == names.end())
    throw TypeError(fmt::format("'{}' is neither the folder of a run nor a model{}; models are {}",
                                options.source, did_you_mean(options.source, names),
                                fmt::join(names, ", ")));
  return of_preset(options);
}

int export_source(const ExportVerbOptions& options) {
  const Exported exported = open_source(options);
  onnx::export_model(exported.graph, exported.weights, options.out, {.opset = options.opset});
  const std::uintmax_t bytes = fs::file_size(options.out);
  if (options.json)
    fmt::print("{}\n", nlohmann::ordered_json{{"file", options.out},
                                              {"from", exported.from},
                                              {"opset", options.opset},
                                              {"batch", options.batch},
                                              {"bytes", bytes}}
                           .dump());
  else
    fmt::print("{}: {} bytes, operators of version {}, from {}; read again, it computes the same\n",
               options.out, bytes, options.opset, exported.from);
  return 0;
}

}  // namespace

Run export_verb(CLI::App& verb) {
  const auto options = std::make_shared<ExportVerbOptions>();
  verb.add_option("SOURCE", options->source, "The folder of a run, or a model of the zoo")
      ->required();
  verb.add_option("--out", options->out, "The ONNX file to write")->required();
  verb.add_option("--checkpoint", options->checkpoint,
                  "Of a run: last, best (by the run's checkpoint.metric), or the name of one")
      ->capture_default_str();
  verb.add_option("--weights", options->weights,
                  "Of a model: a safetensors file, its index, or a folder with one");
  verb.add_option("--batch", options->batch, "Items that the model takes at once")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20))
      ->capture_default_str();
  verb.add_option("--opset", options->opset, "The version of the ONNX operators")
      ->capture_default_str();
  verb.add_flag("--json", options->json, "Tell what was written as JSON");
  verb.footer(
      "The evaluation form of the model, without loss and labels. The file is read again and\n"
      "compared with the model before it gets its name.");
  return [options] { return export_source(*options); };
}

}  // namespace pantala::tools
