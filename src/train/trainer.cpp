// Trainer: construction, single steps, access.
#include "pantala/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/log.h"
#include "base/text.h"
#include "pantala/error.h"
#include "plan/compiled_plan.h"
#include "train/trainer_impl.h"

namespace pantala {

namespace {

train::PlanNames names_of(const TrainConfig& config) {
  return {config.data_input, config.label_input, config.loss_output, config.prediction_output,
          config.plan_cache};
}

void check_config(const TrainConfig& config) {
  if (config.log_interval < 0)
    throw TypeError(
        fmt::format("trainer: log_interval must be 0 or more, got {}", config.log_interval));
  if (config.plateau && !std::holds_alternative<ConstantRate>(config.rate_schedule.kind()))
    throw TypeError(fmt::format(
        "trainer: plateau and the rate schedule {} both set the rate; with plateau the rate "
        "schedule must be constant (its warm-up counts)",
        config.rate_schedule.str()));
}

}  // namespace

double Evaluation::value(std::string_view name) const {
  if (name == "loss") return loss;
  std::vector<std::string> names = {"loss"};
  for (const auto& [known, value] : values) {
    if (known == name) return value;
    names.push_back(known);
  }
  throw TypeError(
      fmt::format("the evaluation has no metric '{}'{}", name, did_you_mean(name, names)));
}

std::optional<double> TrainHistory::final_loss() const {
  if (epochs.empty()) return {};
  return epochs.back().avg_loss;
}

namespace {

// Sums that are read while the backward pass runs wait for no flag; windows are the trainer's.
CompileOptions sharded_options(const TrainConfig& config, CompileOptions options,
                               const ModelFactory& model, std::int64_t batch_size) {
  options = train::training_options(config, std::move(options));
  if (!config.distributed.is_used()) return options;
  options.split_update = true;
  options.accumulation_steps = 1;
  options.guard_micro_batches = false;
  if (config.distributed.shard_optimizer && config.distributed.ranks->size() > 1)
    options.training.updated = train::own_parameters(model(batch_size, Phase::training).graph,
                                                     options.training, *config.distributed.ranks);
  return options;
}

// Whose plan is the main one.
std::int64_t main_size(const TrainConfig& config, std::int64_t batch_size) {
  if (!config.distributed.is_used() || batch_size < 1) return batch_size;
  return distributed::items_of_shard(batch_size, config.distributed.shards, 0).size();
}

TrainConfig checked(TrainConfig config) {
  check_config(config);
  if (config.distributed.is_used()) config.distributed = train::complete(config.distributed);
  return config;
}

}  // namespace

Trainer::Impl::Impl(Session given, TrainConfig config_given)
    : config(std::move(config_given)), plans(std::move(given), names_of(config)) {
  check_config(config);
  if (config.distributed.is_used())
    throw TypeError(
        "trainer: shards are batches of another size: give the trainer the model as a function of "
        "batch size and phase instead of a session");
  check_session();
  optim::set_scalars(session(), config.optimizer);
  open_way_back();
  if (config.plateau) state.plateau = Plateau(config.optimizer.lr(), *config.plateau).state();
}

Trainer::Impl::Impl(ModelFactory model, std::int64_t batch_size, TrainConfig config_given,
                    CompileOptions options, const SessionOptions& session_options)
    : config(checked(std::move(config_given))),
      plans(model, main_size(config, batch_size), names_of(config),
            sharded_options(config, options, model, main_size(config, batch_size)),
            session_options),
      sharded_window_(options.accumulation_steps) {
  if (config.distributed.is_used()) sharded_.emplace(config.distributed, plans);
  if (config.distributed.shard_optimizer && sharded_->ranks().size() > 1)
    own_updates_.emplace(config.distributed.ranks);
  const TrainingStepOptions& training = options.training;
  norms_need_all_ = training.clip.norm || training.global_norm || training.gradient_norms;
  config.data_input = plans.names().data;
  config.label_input = plans.names().labels;
  config.loss_output = plans.names().loss;
  config.prediction_output = plans.names().prediction;
  if (!sharded_) open_way_back();
  if (config.plateau) state.plateau = Plateau(config.optimizer.lr(), *config.plateau).state();
}

void Trainer::Impl::check_session() const {
  const CompiledPlan::Data& plan = *session().compiled().data();
  if (!plan.optimizer) throw TypeError("trainer: the session was built without an optimizer");
  if (!plan.optimizer->same_graph(config.optimizer))
    throw TypeError(fmt::format(
        "trainer: the config's optimizer is {}, but the session was built with {}; the kind is "
        "compiled into the session",
        config.optimizer.str(), plan.optimizer->str()));
  const bool guarded = plan.non_finite != NonFiniteGuard::none;
  if (guarded == (config.non_finite == NonFinite::propagate))
    throw TypeError(
        guarded ? "trainer: non_finite is propagate, but the session was built with a guard, which "
                  "leaves such steps out; build it with NonFiniteGuard::none"
                : "trainer: the session was built with NonFiniteGuard::none, so that numbers which "
                  "are not finite cannot be stopped; build it with a guard, or set non_finite to "
                  "propagate");
}

void Trainer::Impl::open_way_back() {
  if (session().compiled().data()->non_finite == NonFiniteGuard::watched)
    rewind_.emplace(config.plan_cache);
}

// None: the session's rate stays as it is.
std::optional<double> Trainer::Impl::scheduled_rate() const {
  // Those that were begun are counted as if they went well; if not, they are begun again.
  const std::int64_t step = state.global_steps + updates_begun();
  if (state.plateau) return config.rate_schedule.lr(step, state.plateau->lr);
  if (std::holds_alternative<ConstantRate>(config.rate_schedule.kind()) &&
      config.rate_schedule.warmup_steps() == 0)
    return {};
  return config.rate_schedule.lr(step, config.optimizer.lr());
}

void Trainer::Impl::tell(const Activity& activity) {
  for (std::size_t k = 0; k < callbacks.size(); ++k) callbacks[k]->on_activity(activity);
}

// Compiling, or waiting for it, is no time of training.
void Trainer::Impl::bring_plan(const train::Plans::Use& use) {
  if (plans.has(use)) return;
  const Clock::time_point begin = Clock::now();
  const bool takes_long = !plans.is_at_hand(use);
  if (takes_long) tell({.kind = Activity::Kind::compiling});
  plans.bring(use);
  if (takes_long && use.first == Phase::training) tell({});
  if (step_begin_) *step_begin_ += Clock::now() - begin;
}

std::optional<StepMetrics> Trainer::Impl::step(const data::Batch& batch, data::Batch* from_loader) {
  check_values();
  if (sharded_) return take_sharded(batch, from_loader != nullptr);
  if (plans.has_model() && batch.items() > 0) bring_plan({Phase::training, batch.items()});
  const SessionPlan& plan = begin_step(batch);
  const double loss = plan.loss();
  const std::optional<StepMetrics> metrics = end_step(batch, from_loader, loss);
  return session().last_step_finite() && window_is_complete() ? apply_window(&batch) : metrics;
}

// Up to the point where the session computes.
const SessionPlan& Trainer::Impl::begin_step(const data::Batch& batch) {
  const SessionPlan& plan = plans.step_on(batch);
  tell_changes();
  if (const std::optional<double> rate = scheduled_rate()) session().set_learning_rate(*rate);
  if (rewind_) rewind_->before_step(session());
  if (session().splits_update())
    plan.accumulate();
  else
    plan.run();
  if (rewind_) rewind_->started(session());
  last_plan_ = &plan;
  last_items_ = batch.items();
  return plan;
}

// With the step that the session has looked at last.
std::optional<StepMetrics> Trainer::Impl::end_step(const data::Batch& batch,
                                                   data::Batch* from_loader, double loss) {
  const bool split = session().splits_update();
  if (!session().data().finite()) {
    if (session().data().spoilt()) bring_back(loss);
    refuse_step(&batch, loss, false);
    if (from_loader) ++state.batches;
    return {};
  }
  const std::int64_t labels = plans.labels_that_count(batch);
  // A mean over no labels is no number, which would spoil the sum.
  const double loss_sum = labels > 0 ? loss * static_cast<double>(labels) : 0.0;
  run_items_ += batch.items();
  if (from_loader) ++state.batches;
  if (rewind_ && from_loader)
    rewind_->add(std::move(*from_loader));
  else if (rewind_)
    rewind_->add(batch);
  if (!split) {
    state.loss_sum += loss_sum;
    state.labels += labels;
    return finish_step(loss);
  }
  state.window_loss += loss_sum;
  state.window_labels += labels;
  if (from_loader) ++state.window_batches;
  return {};
}

// With so many micro-batches more.
bool Trainer::Impl::window_is_complete(std::int64_t more) {
  return session().splits_update() &&
         session().data().accumulated() + more >= session().accumulation_steps();
}

std::int64_t Trainer::Impl::window_size() const {
  return sharded_ ? sharded_window_ : session().accumulation_steps();
}

std::optional<StepMetrics> Trainer::Impl::finish_window() {
  if (sharded_) return held_.empty() ? std::nullopt : run_sharded(true);
  if (!session().splits_update() || session().accumulated() == 0) return {};
  if (const std::optional<double> rate = scheduled_rate()) session().set_learning_rate(*rate);
  return apply_window(nullptr);
}

std::optional<StepMetrics> Trainer::Impl::apply_window(const data::Batch* last) {
  for (std::size_t k = 0; k < callbacks.size(); ++k) callbacks[k]->on_gradients(session());
  session().apply();
  session().data().settle();
  return end_window(last);
}

// When the session has looked at the update.
std::optional<StepMetrics> Trainer::Impl::end_window(const data::Batch* last) {
  const bool finite = session().data().finite();
  if (!finite) refuse_step(last, state.window_loss, true);
  const double sum = state.window_loss;
  const std::int64_t labels = state.window_labels;
  state.window_loss = 0;
  state.window_labels = 0;
  state.window_batches = 0;
  if (!finite) return {};
  state.loss_sum += sum;
  state.labels += labels;
  return finish_step(sum / static_cast<double>(labels));
}

StepMetrics Trainer::Impl::finish_step(double loss) {
  has_updated_ = true;
  const StepMetrics metrics{state.epoch, state.epoch_steps, loss};
  ++state.epoch_steps;
  ++state.global_steps;
  last_loss_ = loss;
  if (config.log_interval > 0 && metrics.step % config.log_interval == 0)
    logging::info("epoch {} step {}: loss {:.4f}", metrics.epoch, metrics.step, loss);
  for (std::size_t k = 0; k < callbacks.size(); ++k) callbacks[k]->on_step(metrics);
  return metrics;
}

// The values of before the step, which a step that is only watched has changed.
void Trainer::Impl::bring_back(double loss) {
  is_spoilt_ = true;
  try {
    rewind_->go_back(plans);
  } catch (const Error& error) {
    throw DivergenceError(fmt::format(
        "epoch {}, step {}: a gradient or a new value is not finite (the loss is {}), and the "
        "weights of before this step could not be brought back: {}",
        state.epoch, state.epoch_steps, exact(loss), error.what()));
  }
  is_spoilt_ = false;
}

// What could not be brought back is neither saved nor trained on.
void Trainer::Impl::check_values() const {
  if (is_spoilt_)
    throw DivergenceError(
        "the values hold numbers that are not finite and could not be brought back; load a "
        "checkpoint");
}

// A step, or an update that a whole window waited for, has changed nothing. In the latter case the
// session has dropped the window: it is as if its batches had not been taken from the loader.
void Trainer::Impl::refuse_step(const data::Batch* batch, double loss, bool is_window) {
  if (config.non_finite == NonFinite::skip) {
    // A run that skips for ever must not fill the disk with lines about it.
    if (std::has_single_bit(static_cast<std::uint64_t>(++state.skipped)))
      logging::warning("epoch {} step {}: not finite, left out ({} so far)", state.epoch,
                       state.epoch_steps, state.skipped);
    return;
  }
  if (is_window) {
    state.batches -= state.window_batches;
    state.window_loss = 0;
    state.window_labels = state.window_batches = 0;
  }
  failed_batch = batch ? std::optional(*batch) : std::nullopt;
  throw DivergenceError(fmt::format(
      "epoch {}, step {} (optimizer step {}, batch {} of the epoch): {}; the weights are those "
      "before this step",
      state.epoch, state.epoch_steps, state.global_steps, state.batches,
      std::isfinite(loss) ? "a gradient is not finite, or its norm"
                          : fmt::format("the loss is {}", exact(loss))));
}

Progress Trainer::Impl::progress() const {
  const auto seconds = [](Clock::duration time) {
    return std::chrono::duration<double>(time).count();
  };
  Progress progress;
  progress.epoch = state.epoch;
  progress.epochs = epochs_;
  progress.batch = state.batches;
  progress.batches = loader_batches_;
  progress.global_steps = state.global_steps;
  progress.items = run_items_;
  progress.seconds = seconds(run_time_);
  if (step_begin_) progress.seconds += seconds(Clock::now() - *step_begin_);
  progress.wait_seconds = seconds(wait_time_);
  if (sharded_ && sharded_->ranks().size() > 1)
    progress.exposed_seconds = seconds(sharded_->exposed() - exposed_before_);
  progress.learning_rate = session().learning_rate();
  progress.loss = last_loss_;
  if (has_updated_) {
    const SessionPlan updated = session().splits_update() ? session().plan("apply") : *last_plan_;
    const std::vector<std::string> outputs = updated.outputs();
    if (std::find(outputs.begin(), outputs.end(), "grad_norm") != outputs.end())
      progress.gradient_norm = updated.output_scalar("grad_norm");
  }
  return progress;
}

Trainer::Trainer(Session session, TrainConfig config)
    : impl_(std::make_unique<Impl>(std::move(session), std::move(config))) {}
Trainer::Trainer(ModelFactory model, std::int64_t batch_size, TrainConfig config,
                 CompileOptions options, const SessionOptions& session)
    : impl_(std::make_unique<Impl>(std::move(model), batch_size, std::move(config),
                                   std::move(options), session)) {}
Trainer::~Trainer() = default;
Trainer::Trainer(Trainer&&) noexcept = default;
Trainer& Trainer::operator=(Trainer&&) noexcept = default;

TrainHistory Trainer::train(data::Loader& loader, std::int64_t epochs) {
  return impl_->train(*this, loader, epochs);
}
EpochStats Trainer::train_epoch(data::Loader& loader, std::int64_t epoch) {
  return impl_->train_epoch(*this, loader, epoch);
}
FitResult Trainer::fit(data::Loader& loader, const FitOptions& options) {
  return impl_->fit(*this, loader, options);
}
std::optional<StepMetrics> Trainer::step(const data::Batch& batch) { return impl_->step(batch); }
std::optional<StepMetrics> Trainer::finish_window() { return impl_->finish_window(); }
Evaluation Trainer::evaluate(data::Loader& loader) { return impl_->evaluate(loader); }
Evaluation Trainer::evaluate(data::Loader& own, distributed::Communicator& ranks) {
  return impl_->evaluate(own, &ranks);
}
data::Array Trainer::predict(const data::Array& data) { return impl_->predict(data); }

void Trainer::add_callback(std::shared_ptr<MetricCallback> callback) {
  if (!callback) throw TypeError("trainer: the callback is null");
  impl_->callbacks.push_back(std::move(callback));
}

Session& Trainer::session() { return impl_->plans.session(); }
const Session& Trainer::session() const { return impl_->plans.session(); }
Session Trainer::into_session() && { return std::move(impl_->plans.session()); }
const TrainConfig& Trainer::config() const { return impl_->config; }
const TrainerState& Trainer::state() const { return impl_->state; }
Progress Trainer::progress() const { return impl_->progress(); }
const std::optional<Evaluation>& Trainer::last_evaluation() const { return impl_->last_evaluation; }
const data::Batch* Trainer::failed_batch() const {
  return impl_->failed_batch ? &*impl_->failed_batch : nullptr;
}
void Trainer::save_model(const std::filesystem::path& path) { impl_->save_model(path); }
void Trainer::save_checkpoint(const std::filesystem::path& folder, const std::string& extra) const {
  impl_->save_checkpoint(folder, extra);
}
std::string Trainer::load_checkpoint(const std::filesystem::path& folder) {
  return impl_->load_checkpoint(folder);
}
std::optional<Trainer::Resumed> Trainer::resume(const std::filesystem::path& checkpoints) {
  return impl_->resume(checkpoints);
}
std::optional<std::int64_t> Trainer::restore_best() { return impl_->restore_best(); }

}  // namespace pantala
