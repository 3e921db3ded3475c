// pantala eval: how good the model of a run is.
#include <fmt/format.h>

#include <memory>

#include "pantala/error.h"
#include "run/ranks.h"
#include "run/result.h"
#include "run/run_data.h"
#include "run/sources/source.h"
#include "run/trained.h"
#include "tools/command.h"
#include "tools/compile_flags.h"
#include "tools/options.h"
#include "tools/process.h"
#include "tools/ranks.h"

namespace pantala::tools {

namespace {

struct EvalOptions {
  std::string run, checkpoint = run::kReported, data;
  std::string device, distributed = "auto";
  int threads = 0;
  bool json = false;
};

// What is evaluated: the data that are named, or the validation of the run.
data::Dataset open_data(const EvalOptions& options, const run::Trained& trained) {
  if (!options.data.empty()) {
    const run::RunConfig named = run::make_config({{"data.source", options.data, "--data"}});
    return run::open_for_model(named.data.source, trained.config, trained.facts);
  }
  run::RunData data = run::open_run_data(trained.config);
  if (data.facts != trained.facts)
    throw TypeError(
        fmt::format("{} has changed since the run; name the data to evaluate with --data",
                    trained.config.data.source));
  if (!data.validation)
    throw TypeError("the run had no validation; name the data to evaluate with --data");
  return *data.validation;
}

int evaluate(const EvalOptions& options, const run::RunRanks& ranks) {
  run::Trained trained = open_on_ranks(
      options.run, {options.checkpoint, options.threads, plan_cache(), options.device}, ranks);
  const data::Dataset set = open_data(options, trained);
  agree_on_items(ranks, trained, set);
  OwnBatches own(ranks, run::open_loader(set, trained.config, trained.facts, run::Use::evaluation));
  const Evaluation evaluation = ranks.are_several()
                                    ? trained.trainer.evaluate(own, *ranks.communicator())
                                    : trained.trainer.evaluate(own);
  if (!ranks.writes()) return 0;
  io::OrderedJson json = run::evaluation_json(evaluation, trained.facts);
  json["checkpoint"] = trained.checkpoint;
  if (trained.best_epoch) json["best_epoch"] = *trained.best_epoch + 1;
  json["data"] = set.name;
  if (options.json)
    fmt::print("{}\n", json.dump());
  else
    fmt::print("{} on {}\n{}", trained.weights_text(), set.name,
               run::evaluation_text(json, "the result"));
  return 0;
}

}  // namespace

Run eval_verb(VerbOptions& verb) {
  const auto options = std::make_shared<EvalOptions>();
  verb.add_option("RUN", options->run, "The folder of a run")->required();
  verb.add_option("--checkpoint", options->checkpoint, run::checkpoint_help())
      ->capture_default_str();
  verb.add_option(
      "--data", options->data,
      run::source_rule() + "; a test set if there is one. Not given: the validation of the run");
  add_device_flag(verb, options->device, "as in the run");
  verb.add_option("--threads", options->threads, "Threads that compute; 0: as in the run")
      ->between(0, 1024)
      ->capture_default_str();
  add_distributed_option(verb, options->distributed, "evaluate");
  verb.add_flag("--json", options->json, "One JSON object");
  verb.footer(
      "Examples:\n"
      "  pantala eval runs/lenet-fashion-mnist\n"
      "  pantala eval runs/mlp-iris --checkpoint best --data csv:new.csv --json");
  return [options] {
    return in_ranks(options->distributed, {},
                    [&](const auto& ranks) { return evaluate(*options, run::RunRanks(ranks)); });
  };
}

}  // namespace pantala::tools
