// Epochs and whole runs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/log.h"
#include "base/text.h"
#include "pantala/cancelled.h"
#include "pantala/error.h"
#include "train/trainer_impl.h"

namespace pantala {

namespace {

bool is_better(double value, double best, bool larger_is_better, double min_delta) {
  return larger_is_better ? value > best + min_delta : value < best - min_delta;
}

// The metrics that an evaluation can have; a name that it turns out not to have is an error later.
void check_metric(const std::string& name, std::string_view option) {
  const std::vector<std::string> known = metrics::names();
  if (std::find(known.begin(), known.end(), name) == known.end())
    throw TypeError(
        fmt::format("fit: {}: there is no metric '{}'{}", option, name, did_you_mean(name, known)));
}

void check_at_least(std::int64_t value, std::int64_t least, std::string_view option) {
  if (value < least)
    throw TypeError(fmt::format("fit: {} must be {} or more, got {}", option, least, value));
}

// Keeps the place of fit() while other epochs are run.
class OwnPlace {
 public:
  explicit OwnPlace(TrainerState& state)
      : state_(state),
        epoch_(state.epoch),
        batches_(state.batches),
        epoch_steps_(state.epoch_steps),
        labels_(state.labels),
        loss_sum_(state.loss_sum) {}
  ~OwnPlace() {
    state_.epoch = epoch_;
    state_.batches = batches_;
    state_.epoch_steps = epoch_steps_;
    state_.labels = labels_;
    state_.loss_sum = loss_sum_;
  }
  OwnPlace(const OwnPlace&) = delete;
  OwnPlace& operator=(const OwnPlace&) = delete;

 private:
  TrainerState& state_;
  const std::int64_t epoch_, batches_, epoch_steps_, labels_;
  const double loss_sum_;
};

}  // namespace

void Trainer::Impl::start(Trainer& self, std::int64_t epochs) {
  epochs_ = epochs;
  run_items_ = 0;
  run_time_ = wait_time_ = {};
  if (sharded_) exposed_before_ = sharded_->exposed();
  step_begin_.reset();
  for (std::size_t k = 0; k < callbacks.size(); ++k) callbacks[k]->on_start(self);
  if (sharded_) tell_needs();
}

void Trainer::Impl::clear_epoch() {
  state.batches = state.epoch_steps = state.labels = 0;
  state.loss_sum = 0;
}

EpochStats Trainer::Impl::epoch_stats() const {
  // 0 of an epoch that had batches would look like a perfect model.
  const double none = state.batches > 0 ? std::numeric_limits<double>::quiet_NaN() : 0.0;
  const double mean = state.labels > 0 ? state.loss_sum / static_cast<double>(state.labels) : none;
  return {state.epoch, mean, state.epoch_steps};
}

// While the first batches are trained. The one that an epoch needs first comes first.
void Trainer::Impl::prepare_plans(const data::Loader& loader, const data::Loader* validation) {
  std::vector<std::int64_t> sizes = loader.batch_sizes();
  if (sharded_) sizes = sharded_->shard_sizes(sizes);
  for (const std::int64_t items : sizes) plans.prepare({Phase::training, items});
  if (!validation) return;
  sizes = validation->batch_sizes();
  if (sharded_) sizes = sharded_->shard_sizes(sizes);
  for (const std::int64_t items : sizes) plans.prepare({Phase::evaluation, items});
}

void Trainer::Impl::begin_epoch(data::Loader& loader) {
  loader_batches_ = loader.batches();
  const auto epoch = static_cast<std::uint64_t>(state.epoch);
  if (state.batches > 0) {
    loader.seek(epoch, state.batches);
  } else {
    clear_epoch();
    loader.shuffle(epoch);
  }
}

// Whatever ends it: the session has gone as far as the state says.
Trainer::Impl::PassEnd Trainer::Impl::pass(data::Loader& loader, const FitOptions& options) {
  try {
    begin_epoch(loader);
    const PassEnd end = take_batches(loader, options);
    finish_begun(options);
    return end;
  } catch (...) {
    try {
      finish_begun(options);
    } catch (const Error&) {
      // What happened first is told.
    }
    throw;
  }
}

// The batches that are left of the epoch, with what is to be done between them.
Trainer::Impl::PassEnd Trainer::Impl::take_batches(data::Loader& loader,
                                                   const FitOptions& options) {
  while (true) {
    const Clock::time_point begin = Clock::now();
    std::optional<data::Batch> batch = loader.next_batch();
    const Clock::time_point loaded = Clock::now();
    wait_time_ += loaded - begin;
    session().add_span("load", "data", begin);
    run_time_ += loaded - begin;
    if (!batch) return PassEnd::end_of_data;
    if (options.max_steps > 0 && state.global_steps >= options.max_steps)
      return PassEnd::step_limit;
    step_begin_ = loaded;
    take(*batch, options);
    run_time_ += Clock::now() - *step_begin_;
    step_begin_.reset();
    const Request request = sharded_ ? std::exchange(asked_, Request::none) : asked(options);
    if (request != Request::none) {
      finish_begun(options);
      if (saved_at_ != place(options.checkpoints.folder)) save(options.checkpoints);
    }
    if (request == Request::save_and_stop) return PassEnd::stop;
  }
}

EpochStats Trainer::Impl::train_epoch(Trainer& self, data::Loader& loader, std::int64_t epoch) {
  if (epoch < 0)
    throw TypeError(fmt::format("train_epoch: epoch must be 0 or more, got {}", epoch));
  if (config.plateau)
    throw TypeError("train: plateau reacts to the validation of fit(); there is none here");
  const OwnPlace own(state);
  start(self, epoch + 1);
  prepare_plans(loader, nullptr);
  return one_epoch(loader, epoch);
}

EpochStats Trainer::Impl::one_epoch(data::Loader& loader, std::int64_t epoch) {
  const SessionSpan span(session(), "epoch");
  clear_epoch();
  state.epoch = epoch;
  pass(loader, {});
  finish_window();
  const EpochStats stats = epoch_stats();
  for (std::size_t k = 0; k < callbacks.size(); ++k) callbacks[k]->on_epoch(stats);
  return stats;
}

TrainHistory Trainer::Impl::train(Trainer& self, data::Loader& loader, std::int64_t epochs) {
  if (epochs < 0) throw TypeError(fmt::format("train: epochs must be 0 or more, got {}", epochs));
  if (config.plateau)
    throw TypeError("train: plateau reacts to the validation of fit(); there is none here");
  TrainHistory history;
  if (epochs == 0) return history;
  const OwnPlace own(state);
  start(self, epochs);
  prepare_plans(loader, nullptr);
  for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
    const EpochStats stats = one_epoch(loader, epoch);
    log_epoch(stats, {});
    history.epochs.push_back(stats);
    history.evaluations.emplace_back();
  }
  return history;
}

void Trainer::Impl::log_epoch(const EpochStats& stats,
                              const std::optional<Evaluation>& evaluation) {
  if (stats.steps == 0 && std::isnan(stats.avg_loss))
    logging::warning(
        "epoch {}: every step was left out, because its numbers were not finite: there is no loss",
        stats.epoch);
  if (!logging::enabled(logging::Level::info)) return;
  std::string line = fmt::format("epoch {}: loss {:.4f}, {}", stats.epoch, stats.avg_loss,
                                 counted(static_cast<std::size_t>(stats.steps), "step"));
  if (evaluation) {
    line += fmt::format("; validation loss {:.4f}", evaluation->loss);
    for (const auto& [name, value] : evaluation->values)
      line += fmt::format(", {} {:.4f}", name, value);
  }
  logging::info("{}", line);
}

void Trainer::Impl::check_fit(const FitOptions& options) const {
  check_at_least(options.epochs, 0, "epochs");
  check_at_least(options.max_steps, 0, "max_steps");
  const CheckpointOptions& checkpoints = options.checkpoints;
  check_at_least(checkpoints.every_steps, 0, "checkpoints.every_steps");
  check_at_least(checkpoints.every_epochs, 0, "checkpoints.every_epochs");
  check_at_least(checkpoints.keep_last, 0, "checkpoints.keep_last");
  check_metric(checkpoints.metric, "checkpoints.metric");
  if (options.early_stopping) {
    check_at_least(options.early_stopping->patience, 0, "early_stopping.patience");
    check_metric(options.early_stopping->metric, "early_stopping.metric");
    if (!(options.early_stopping->min_delta >= 0))
      throw TypeError(fmt::format("fit: early_stopping.min_delta must be 0 or more, got {}",
                                  exact(options.early_stopping->min_delta)));
    if (!options.validation) throw TypeError("fit: early_stopping needs `validation`");
  }
  if (config.plateau) {
    check_metric(config.plateau_metric, "plateau_metric");
    if (!options.validation) throw TypeError("fit: plateau needs `validation`");
  }
  if (options.validation && !plans.has_model())
    throw TypeError(
        "fit: validation needs a plan of its own: give the trainer the model as a function of "
        "batch size and phase instead of a session");
}

// A loader that is not the one of the checkpoint would go on elsewhere in an epoch.
void Trainer::Impl::check_loader(const data::Loader& loader) {
  const std::string fingerprint = loader.fingerprint();
  if (!loader_fingerprint_.empty() && !fingerprint.empty() && fingerprint != loader_fingerprint_) {
    if (state.batches > 0)
      throw TypeError(fmt::format(
          "fit: epoch {} was begun with other data, or another order or batch size: the loader's "
          "fingerprint was {}, now it is {}",
          state.epoch, loader_fingerprint_, fingerprint));
    logging::warning(
        "fit: the data, their order or the batch size are not those of the epochs before");
  }
  loader_fingerprint_ = fingerprint;
}

FitResult Trainer::Impl::fit(Trainer& self, data::Loader& loader, const FitOptions& options) {
  check_fit(options);
  check_loader(loader);
  poll_ = options.poll;
  held_.clear();
  start(self, options.epochs);
  try {
    return run_fit(loader, options);
  } catch (const CancelledError&) {
    // A plan that was not compiled has changed nothing: what is there can be gone on from.
    if (saved_at_ != place(options.checkpoints.folder)) save(options.checkpoints);
    return {FitEnd::interrupted, state.history};
  }
}

FitResult Trainer::Impl::run_fit(data::Loader& loader, const FitOptions& options) {
  const auto steps_left = [&] {
    return options.max_steps == 0 || state.global_steps < options.max_steps;
  };
  // An epoch that was begun is entered even without steps left: it may be at its end.
  const auto goes_on = [&] {
    return state.epoch < options.epochs && !state.stopped_early &&
           (steps_left() || state.batches > 0);
  };
  if (goes_on()) prepare_plans(loader, options.validation);
  while (goes_on()) {
    const SessionSpan span(session(), "epoch");
    const PassEnd end = pass(loader, options);
    if (end == PassEnd::stop) return {FitEnd::interrupted, state.history};
    if (end == PassEnd::step_limit) break;
    if (finish_epoch(options) && state.epoch < options.epochs && !state.stopped_early &&
        steps_left())
      return {FitEnd::interrupted, state.history};
  }
  return end_fit(options);
}

// True if the run is to stop here.
bool Trainer::Impl::finish_epoch(const FitOptions& options) {
  const std::int64_t steps_before = state.global_steps;
  finish_window();
  const EpochStats stats = epoch_stats();
  const std::optional<Evaluation> evaluation = validate(options);
  // From here on the epoch is over, whatever happens: callbacks may save.
  state.history.epochs.push_back(stats);
  state.history.evaluations.push_back(evaluation);
  ++state.epoch;
  clear_epoch();
  if (evaluation) judge(*evaluation, options);
  log_epoch(stats, evaluation);
  for (std::size_t k = 0; k < callbacks.size(); ++k) callbacks[k]->on_epoch(stats);
  const auto due = [](std::int64_t count, std::int64_t every) {
    return every > 0 && count % every == 0;
  };
  const CheckpointOptions& checkpoints = options.checkpoints;
  const Request request = asked(options);
  if (due(state.epoch, checkpoints.every_epochs) || request != Request::none ||
      (state.global_steps > steps_before && due(state.global_steps, checkpoints.every_steps)))
    save(checkpoints);
  return request == Request::save_and_stop;
}

std::optional<Evaluation> Trainer::Impl::validate(const FitOptions& options) {
  if (!options.validation) return {};
  const SessionSpan span(session(), "validation");
  Evaluation evaluation = evaluate(*options.validation);
  if (evaluation.items == 0) throw TypeError("fit: the validation loader has no items");
  return evaluation;
}

void Trainer::Impl::judge(const Evaluation& evaluation, const FitOptions& options) {
  if (config.plateau) {
    Plateau plateau(config.optimizer.lr(), *config.plateau);
    plateau.restore(*state.plateau);
    if (plateau.report(evaluation.value(config.plateau_metric)))
      logging::info("epoch {}: {} has stopped improving, the rate is {:.6g} from now on",
                    state.epoch - 1, config.plateau_metric, plateau.lr());
    state.plateau = plateau.state();
  }
  if (!options.early_stopping) return;
  const EarlyStopping& stopping = *options.early_stopping;
  const double value = evaluation.value(stopping.metric);
  const bool improved =
      state.best ? is_better(value, *state.best, stopping.larger_is_better, stopping.min_delta)
                 : !std::isnan(value);
  if (improved) {
    state.best = value;
    state.best_epoch = state.epoch - 1;
    state.bad_epochs = 0;
    if (stopping.restore_best) best_weights_ = train::Snapshot::of(session(), true);
  } else if (++state.bad_epochs > stopping.patience) {
    state.stopped_early = true;
  }
}

FitResult Trainer::Impl::end_fit(const FitOptions& options) {
  if (saved_at_ != place(options.checkpoints.folder))
    save(options.checkpoints);
  else
    remove_old(options.checkpoints);  // the run that saved it may have ended before it did
  FitResult result{state.stopped_early ? FitEnd::stopped_early : FitEnd::finished, state.history};
  std::optional<Evaluation> newer;
  // The step limit came within an epoch, which a run with more steps would continue: the state
  // stays.
  if (state.batches > 0) {
    const EpochStats stats = epoch_stats();
    newer = validate(options);
    result.history.epochs.push_back(stats);
    result.history.evaluations.push_back(newer);
    log_epoch(stats, newer);
    for (std::size_t k = 0; k < callbacks.size(); ++k) callbacks[k]->on_epoch(stats);
  }
  if (options.early_stopping && options.early_stopping->restore_best && best_weights_) {
    const EarlyStopping& stopping = *options.early_stopping;
    const bool newer_is_better = newer && is_better(newer->value(stopping.metric), *state.best,
                                                    stopping.larger_is_better, stopping.min_delta);
    if (!newer_is_better) result.restored_epoch = restore_best();
  }
  return result;
}

}  // namespace pantala
