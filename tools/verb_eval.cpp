// pantala eval: how good the model of a run is.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "pantala/error.h"
#include "tools/command.h"
#include "tools/train/result.h"
#include "tools/train/trained.h"

namespace pantala::tools {

namespace {

struct EvalOptions {
  std::string run, checkpoint = "last", data;
  int threads = 0;
  bool json = false;
};

// What is evaluated: the data that are named, or the validation of the run.
data::Dataset open_data(const EvalOptions& options, const Trained& trained) {
  if (!options.data.empty()) {
    const RunConfig named = make_config({{"data.source", options.data, "--data"}});
    return open_for_model(named.data.source, trained.config, trained.profile);
  }
  RunData data = open_run_data(trained.config);
  if (data.profile != trained.profile)
    throw TypeError(
        fmt::format("{} has changed since the run; name the data to evaluate with --data",
                    trained.config.data.source));
  if (!data.validation)
    throw TypeError("the run had no validation; name the data to evaluate with --data");
  return *data.validation;
}

int evaluate(const EvalOptions& options) {
  Trained trained = open_trained(open_run_folder(options.run), options.checkpoint, options.threads);
  const data::Dataset set = open_data(options, trained);
  const auto loader = open_loader(set, trained.config, trained.profile, Use::evaluation);
  OrderedJson json = evaluation_json(trained.trainer.evaluate(*loader), trained.profile);
  json["checkpoint"] = trained.checkpoint;
  json["data"] = set.name;
  if (options.json)
    fmt::print("{}\n", json.dump());
  else
    fmt::print("{} on {}\n{}", trained.checkpoint, set.name, evaluation_text(json, "the result"));
  return 0;
}

}  // namespace

Run eval_verb(CLI::App& verb) {
  const auto options = std::make_shared<EvalOptions>();
  verb.add_option("RUN", options->run, "The folder of a run")->required();
  verb.add_option("--checkpoint", options->checkpoint,
                  "last, best (by the run's checkpoint.metric), or the name of one")
      ->capture_default_str();
  verb.add_option("--data", options->data,
                  "fashion-mnist, idx:DIR, csv:FILE, npz:FILE, images:DIR, tokens:FILE or "
                  "text:FILE; a test set if there is one. Not "
                  "given: the validation of the run");
  verb.add_option("--threads", options->threads, "Threads that compute; 0: as in the run")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  verb.add_flag("--json", options->json, "One JSON object");
  verb.footer(
      "Examples:\n"
      "  pantala eval runs/lenet-fashion-mnist\n"
      "  pantala eval runs/mlp-iris --checkpoint best --data csv:new.csv --json");
  return [options] { return evaluate(*options); };
}

}  // namespace pantala::tools
