// Steps of a trainer whose batches are cut into shards.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/session_data.h"
#include "train/trainer_impl.h"

namespace pantala {

Request Trainer::Impl::asked(const FitOptions& options) {
  const Request own = options.poll ? options.poll() : Request::none;
  return sharded_ ? sharded_->agree(own) : own;
}

void Trainer::Impl::tell_needs() {
  const auto looks = [](const auto& callback) { return callback->looks_at_gradients(); };
  sharded_->need_all_sums(norms_need_all_ || std::ranges::any_of(callbacks, looks));
}

// Micro-batches that wait for the last one of their update are not taken yet: a run that stops
// between them goes on with the first.
std::optional<StepMetrics> Trainer::Impl::take_sharded(const data::Batch& batch, bool from_loader) {
  if (batch.whole_items() < 1) throw TypeError("trainer: a batch without items");
  held_.push_back(batch);
  if (std::ssize(held_) < sharded_window_) return {};
  return run_sharded(from_loader);
}

std::optional<StepMetrics> Trainer::Impl::run_sharded(bool from_loader) {
  tell_changes();
  if (!sharded_->knows_needs()) tell_needs();
  const std::vector<data::Batch> window = std::exchange(held_, {});
  for (const data::Batch& batch : window)
    for (const std::int64_t items : sharded_->shard_sizes({batch.whole_items()}))
      bring_plan({Phase::training, items});
  if (const std::optional<double> rate = scheduled_rate()) session().set_learning_rate(*rate);
  const train::ShardedStep::Sums sums = sharded_->run(window, poll_ ? poll_() : Request::none);
  asked_ = std::max(asked_, sums.request);
  for (std::size_t k = 0; k < callbacks.size(); ++k) callbacks[k]->on_gradients(session());
  session().apply();
  session().data().settle();
  if (own_updates_) own_updates_->share(session());
  if (!session().data().finite()) {
    if (from_loader && config.non_finite == NonFinite::skip) state.batches += std::ssize(window);
    refuse_window(window, sums.loss);
    return {};
  }
  for (const data::Batch& batch : window) run_items_ += batch.whole_items();
  if (from_loader) state.batches += std::ssize(window);
  state.loss_sum += sums.loss;
  state.labels += sums.labels;
  const StepMetrics metrics = finish_step(sums.loss / static_cast<double>(sums.labels));
  const std::int64_t every = config.distributed.check_every;
  if (every > 0 && state.global_steps % every == 0) sharded_->compare_weights(state.global_steps);
  return metrics;
}

// Of several ranks it is told where it began.
void Trainer::Impl::refuse_window(const std::vector<data::Batch>& window, double loss) {
  sharded_->take_back();
  if (config.non_finite == NonFinite::skip) return refuse_step(nullptr, loss, false);
  const auto bad = sharded_->find_bad(window);
  try {
    refuse_step(bad ? &bad->items : nullptr, loss, false);
  } catch (const DivergenceError& error) {
    if (!bad || sharded_->ranks().size() == 1) throw;
    throw DivergenceError(fmt::format("{}; it began in shard {} on rank {} ({})", error.what(),
                                      bad->shard, bad->rank, sharded_->ranks().host(bad->rank)));
  }
}

}  // namespace pantala
