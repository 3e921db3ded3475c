// pantala export: the model of a run, or of the zoo with weights from a file, as an ONNX file.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/doing.h"
#include "base/text.h"
#include "pantala/error.h"
#include "pantala/onnx.h"
#include "pantala/session.h"
#include "pantala/zoo/presets.h"
#include "run/run_data.h"
#include "run/trained.h"
#include "tools/command.h"
#include "tools/options.h"
#include "tools/process.h"
#include "train/snapshot.h"

namespace pantala::tools {

namespace {

namespace fs = std::filesystem;

struct ExportVerbOptions {
  std::string source, out, checkpoint = run::kReported, weights;
  std::int64_t batch = 0;  // 0: any
  std::int64_t opset = onnx::ExportOptions{}.opset;
  bool json = false;
};

struct Exported {
  onnx::GraphOfBatch graph;
  Weights weights;
  std::string from;   // for the report
  std::string given;  // what its input must be
  std::vector<std::pair<std::string, std::string>> metadata = {};
};

// Normalisation is the loader's part, not the model's.
std::string input_text(const run::DataFacts& facts) {
  if (facts.factor == 1 && facts.mean.empty()) return "";
  const std::string scaled = facts.factor == 1 ? "x" : fmt::format("x * {:.6g}", facts.factor);
  if (facts.mean.empty()) return scaled;
  return fmt::format("({} - mean) / std, with the numbers of the run's data.json", scaled);
}

// What somebody who has the file alone must know of the data, as JSON.
std::vector<std::pair<std::string, std::string>> metadata_of(const run::DataFacts& facts) {
  using Json = nlohmann::ordered_json;
  std::vector<std::pair<std::string, std::string>> list{
      {"task", std::string(run::task_name(facts.task()))}};
  if (!facts.names.empty()) list.emplace_back("classes", Json(facts.names).dump());
  if (facts.factor != 1 || !facts.mean.empty())
    list.emplace_back(
        "normalization",
        Json{{"factor", facts.factor}, {"mean", facts.mean}, {"std", facts.std}}.dump());
  if (!facts.fill.empty()) list.emplace_back("fill", Json(facts.fill).dump());
  if (facts.columns.empty()) return list;
  Json columns = Json::array();
  for (const data::Column& column : facts.columns)
    columns.push_back(
        {{"name", column.name}, {"texts", column.texts}, {"one_hot", column.one_hot}});
  list.emplace_back("columns", columns.dump());
  return list;
}

// Without the output that only metrics need.
Graph own_outputs(const Graph& graph) {
  std::vector<std::pair<std::string, Tensor>> outputs = graph.outputs();
  std::erase_if(outputs, [](const auto& output) { return output.first == run::kByPosition; });
  return graph.with_outputs(outputs);
}

Exported of_run(const ExportVerbOptions& options) {
  if (!options.weights.empty())
    throw TypeError("--weights is for a model of the zoo; a run has its own (--checkpoint)");
  run::Trained trained =
      run::open_trained(run::open_run_folder(options.source),
                        {.checkpoint = options.checkpoint, .plan_cache = plan_cache()});
  const train::AveragesInUse averages(trained.trainer.session(), trained.has_averages());
  const ModelFactory factory =
      run::model_factory(trained.config, run::model_shape(trained.config, trained.facts));
  return {.graph =
              [factory](std::int64_t batch) {
                return own_outputs(factory(batch, Phase::evaluation).graph);
              },
          .weights = trained.trainer.session().weights(),
          .from = fmt::format("{}, {}", options.source, trained.weights_text()),
          .given = input_text(trained.facts),
          .metadata = metadata_of(trained.facts)};
}

// Through a session: names are checked as always, and other float types are converted.
Exported of_preset(const ExportVerbOptions& options) {
  const zoo::Preset& preset = zoo::preset(options.source);
  if (options.weights.empty())
    throw TypeError(fmt::format("model {} needs --weights FILE.safetensors", preset.name));
  const auto graph = [preset](std::int64_t batch) {
    return preset.make({.batch = batch, .training = false}).graph;
  };
  Session session = build_inference_session(graph(1));
  session.load_weights(Weights::open(options.weights));
  Weights weights = session.weights();
  return {.graph = graph,
          .weights = std::move(weights),
          .from = fmt::format("{}, {}", preset.name, options.weights),
          .given = ""};
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

onnx::ExportedBatch write_file(const ExportVerbOptions& options, const Exported& exported) {
  const onnx::ExportOptions how{.opset = options.opset, .metadata = exported.metadata};
  if (options.batch == 0)
    return onnx::export_model(exported.graph, exported.weights, options.out, how);
  onnx::export_model(exported.graph(options.batch), exported.weights, options.out, how);
  return {.symbolic = false};
}

std::string batch_text(const onnx::ExportedBatch& batch, std::int64_t asked) {
  if (batch.symbolic) return "it takes batches of any size";
  if (batch.reason.empty()) return fmt::format("it takes batches of {}", asked);
  return fmt::format("it takes batches of 1: another size is not possible, {}", batch.reason);
}

int export_source(const ExportVerbOptions& options) {
  const Doing doing("exporting " + options.source);
  const Exported exported = open_source(options);
  const onnx::ExportedBatch batch = write_file(options, exported);
  const std::uintmax_t bytes = fs::file_size(options.out);
  nlohmann::ordered_json size = std::max<std::int64_t>(options.batch, 1);
  if (batch.symbolic) size = "any";
  if (options.json)
    fmt::print("{}\n", nlohmann::ordered_json{{"file", options.out},
                                              {"from", exported.from},
                                              {"input", exported.given},
                                              {"opset", options.opset},
                                              {"batch", size},
                                              {"bytes", bytes}}
                           .dump());
  else
    fmt::print(
        "{}: {} bytes, operators of version {}, from {}; read again, it computes the same\n{}\n{}",
        options.out, bytes, options.opset, exported.from, batch_text(batch, options.batch),
        exported.given.empty() ? "" : fmt::format("its input is {}\n", exported.given));
  return 0;
}

}  // namespace

Run export_verb(VerbOptions& verb) {
  const auto options = std::make_shared<ExportVerbOptions>();
  verb.add_option("SOURCE", options->source, "The folder of a run, or a model of the zoo")
      ->required();
  verb.add_option("--out", options->out, "The ONNX file to write")->required();
  verb.add_option("--checkpoint", options->checkpoint, "Of a run. " + run::checkpoint_help())
      ->capture_default_str();
  verb.add_option("--weights", options->weights,
                  "Of a model: a safetensors file, its index, or a folder with one");
  verb.add_option("--batch", options->batch,
                  "Items that the model takes at once; otherwise any number, a symbolic size "
                  "'batch', if the model can be written so")
      ->between(std::int64_t{1}, std::int64_t{1} << 20);
  verb.add_option("--opset", options->opset, "The version of the ONNX operators")
      ->capture_default_str();
  verb.add_flag("--json", options->json, "Tell what was written as JSON");
  verb.footer(
      "The evaluation form of the model, without loss and labels. The file is read again and\n"
      "compared with the model before it gets its name.");
  return [options] { return export_source(*options); };
}

}  // namespace pantala::tools
