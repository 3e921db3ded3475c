#include "run/trained.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/doing.h"
#include "base/log.h"
#include "base/text.h"
#include "io/json.h"
#include "pantala/error.h"
#include "run/cost_table.h"
#include "run/result.h"
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
  const std::string& metric = best_metric(config);
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
  std::vector<std::string> names = {kLast, kBest};
  for (const train::NumberedCheckpoint& candidate : list) {
    // Not the folder's, which a crash may have left under another name.
    names.push_back(train::checkpoint_name(candidate.steps));
    if (names.back() == name) return candidate.path;
  }
  names.emplace_back(kReported);
  throw TypeError(fmt::format("there is no checkpoint '{}' in {}{}; there are {}", name,
                              folder.string(), did_you_mean(name, names), fmt::join(names, ", ")));
}

// Whether the run's result is of the weights of its best epoch. `steps` is where the newest
// checkpoint stands: a result of other weights than it has is worth a warning.
bool reports_best(const RunFolder& folder, const RunConfig& config, std::int64_t steps) {
  std::error_code unknown;
  if (!fs::exists(folder.result_file(), unknown)) return false;  // it trains, or was interrupted
  const auto result = io::read_json<OrderedJson>(folder.result_file());
  const std::string where = folder.result_file().string();
  const std::int64_t ended =
      io::extract(where, [&] { return result.at("steps").get<std::int64_t>(); });
  if (ended != steps)
    logging::warning(
        "the weights are those after {} updates, but the result of {} is of those after {}", steps,
        folder.root().string(), ended);
  return has_best_weights(result, config, where);
}

// Loads the checkpoint that the run has called the best one at its end, which may stand within an
// epoch: only the result knows what such a one is worth. False if there is none, or if the result
// is not that of the newest checkpoint.
bool load_promised(Trainer& trainer, const RunFolder& folder, const RunConfig& config,
                   const std::vector<train::NumberedCheckpoint>& list) {
  std::error_code unknown;
  if (!fs::exists(folder.result_file(), unknown)) return false;
  const auto result = io::read_json<OrderedJson>(folder.result_file());
  const std::string where = folder.result_file().string();
  const std::int64_t ended =
      io::extract(where, [&] { return result.at("steps").get<std::int64_t>(); });
  if (ended != list.back().steps) return false;
  const std::string name = promised_best(result, config, where);
  return std::ranges::any_of(list, [&](const train::NumberedCheckpoint& one) {
    return train::checkpoint_name(one.steps) == name && try_load(trainer, one.path);
  });
}

struct Loaded {
  std::string checkpoint;
  std::optional<std::int64_t> best_epoch = {};
};

std::string name_of_loaded(const Trainer& trainer) {
  return train::checkpoint_name(trainer.state().global_steps);
}

Loaded load(Trainer& trainer, const RunFolder& folder, const RunConfig& config,
            const std::string& checkpoint) {
  const std::vector<train::NumberedCheckpoint> list = train::list_checkpoints(folder.checkpoints());
  if (list.empty())
    throw IoError(fmt::format("there is no checkpoint in {} yet", folder.root().string()));
  if (checkpoint == kBest && load_promised(trainer, folder, config, list))
    return {name_of_loaded(trainer)};
  if (checkpoint == kReported || checkpoint == kLast || checkpoint == kBest) {
    trainer.resume(folder.checkpoints());
    Loaded loaded{name_of_loaded(trainer)};
    if (checkpoint == kBest ||
        (checkpoint == kReported && reports_best(folder, config, trainer.state().global_steps)))
      loaded.best_epoch = trainer.restore_best();
    // Without early stopping the best one is a checkpoint of its own.
    if (checkpoint != kBest || loaded.best_epoch) return loaded;
  }
  const fs::path path = checkpoint == kBest ? find_best(trainer, config, list)
                                            : find_named(folder.checkpoints(), checkpoint, list);
  trainer.load_checkpoint(path);
  return {name_of_loaded(trainer)};
}

}  // namespace

std::string Trained::weights_text() const {
  return best_epoch ? fmt::format("{} (the weights of epoch {})", checkpoint, *best_epoch + 1)
                    : checkpoint;
}

std::string checkpoint_help() {
  return "Whose weights: reported (those that the run has reported at its end: after early "
         "stopping "
         "of the best epoch), best (of the best epoch by early_stopping.metric, without early "
         "stopping by checkpoint.metric), last, or the name of a checkpoint";
}

Trained open_trained(const RunFolder& folder, const OpenOptions& options) {
  const Doing doing(fmt::format("loading the model of {}", folder.root().string()));
  RunConfig config = folder.config();
  if (options.device.empty() || options.device == config.device) {
    config = with_recorded_table(folder, std::move(config));
  } else {
    config.device = options.device;
    config.compile.cost_table.clear();  // it is of the other one
  }
  if (options.threads > 0) config.threads = options.threads;
  DataFacts facts = read_facts(folder.data_file());
  // The length of the run only matters for its rate schedule, which nothing here asks.
  Trainer trainer = make_trainer(config, model_shape(config, facts), 1, options.plan_cache);
  Loaded loaded = load(trainer, folder, config, options.checkpoint);
  return {.config = std::move(config),
          .facts = std::move(facts),
          .trainer = std::move(trainer),
          .checkpoint = std::move(loaded.checkpoint),
          .best_epoch = loaded.best_epoch};
}

}  // namespace pantala::run
