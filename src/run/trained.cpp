#include "run/trained.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "base/log.h"
#include "base/text.h"
#include "pantala/error.h"
#include "run/run_data.h"
#include "run/setup.h"
#include "train/checkpoint_files.h"

namespace pantala::run {

namespace {

namespace fs = std::filesystem;

// The metric of the epoch that the checkpoint ends, if it ends one that was evaluated.
std::optional<double> metric_of(const Trainer& trainer, const std::string& metric) {
  const TrainerState& state = trainer.state();
  if (state.batches != 0 || state.history.evaluations.empty()) return {};
  const std::optional<Evaluation>& evaluation = state.history.evaluations.back();
  if (!evaluation || std::isnan(evaluation->value(metric))) return {};
  return evaluation->value(metric);
}

// A checkpoint that is damaged is left out, loudly.
bool try_load(Trainer& trainer, const fs::path& checkpoint) {
  try {
    trainer.load_checkpoint(checkpoint);
    return true;
  } catch (const ParseError& error) {
    logging::warning("checkpoint {} cannot be used: {}", checkpoint.string(), error.what());
  } catch (const IoError& error) {
    logging::warning("checkpoint {} cannot be used: {}", checkpoint.string(), error.what());
  }
  return false;
}

fs::path find_best(Trainer& trainer, const RunConfig& config,
                   const std::vector<train::NumberedCheckpoint>& list) {
  const std::string& metric = config.checkpoint.metric;
  fs::path best;
  double best_value = 0;
  for (const train::NumberedCheckpoint& candidate : list) {
    if (!try_load(trainer, candidate.path)) continue;
    const std::optional<double> value = metric_of(trainer, metric);
    if (!value) continue;
    const bool better =
        metrics::larger_is_better(metric) ? *value > best_value : *value < best_value;
    if (!best.empty() && !better) continue;
    best = candidate.path;
    best_value = *value;
  }
  if (best.empty())
    throw TypeError(
        "--checkpoint best: no checkpoint of this run has an evaluation; take last, or a name");
  return best;
}

fs::path find_named(const fs::path& folder, const std::string& name,
                    const std::vector<train::NumberedCheckpoint>& list) {
  std::vector<std::string> names = {"last", "best"};
  for (const train::NumberedCheckpoint& candidate : list) {
    names.push_back(candidate.path.filename().string());
    if (names.back() == name) return candidate.path;
  }
  throw TypeError(fmt::format("there is no checkpoint '{}' in {}{}; there are {}", name,
                              folder.string(), did_you_mean(name, names), fmt::join(names, ", ")));
}

std::string load(Trainer& trainer, const RunFolder& folder, const RunConfig& config,
                 const std::string& checkpoint) {
  const std::vector<train::NumberedCheckpoint> list = train::list_checkpoints(folder.checkpoints());
  if (list.empty())
    throw IoError(fmt::format("there is no checkpoint in {} yet", folder.root().string()));
  if (checkpoint == "last") {
    const std::optional<Trainer::Resumed> resumed = trainer.resume(folder.checkpoints());
    return resumed ? resumed->checkpoint.filename().string() : "";
  }
  const fs::path path = checkpoint == "best" ? find_best(trainer, config, list)
                                             : find_named(folder.checkpoints(), checkpoint, list);
  trainer.load_checkpoint(path);
  return path.filename().string();
}

}  // namespace

Trained open_trained(const RunFolder& folder, const OpenOptions& options) {
  RunConfig config = folder.config();
  if (options.threads > 0) config.threads = options.threads;
  DataFacts facts = read_facts(folder.data_file());
  // The length of the run only matters for its schedule, which nothing here asks.
  Trainer trainer = make_trainer(config, model_shape(config, facts), 1, options.plan_cache);
  std::string name = load(trainer, folder, config, options.checkpoint);
  return {.config = std::move(config),
          .facts = std::move(facts),
          .trainer = std::move(trainer),
          .checkpoint = std::move(name)};
}

}  // namespace pantala::run
