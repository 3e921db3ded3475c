// Steps of a run that nobody waits for: on a device that computes by itself the next batches are
// handed over while a step runs, and the loss comes down later. Whenever somebody looks (a
// callback, a checkpoint, the end of the epoch) all that was begun has been told before.
#include <algorithm>
#include <utility>

#include "runtime/session_data.h"
#include "train/trainer_impl.h"

namespace pantala {

// The step is told when this returns, or begun.
void Trainer::Impl::take(data::Batch& batch, const FitOptions& options) {
  while (begun_.size() >= runtime::BoundPlan::kMostAhead) finish_first(options);
  if (may_go_ahead(batch, options)) {
    check_values();
    begin_step(batch);
    begun_.push_back(std::move(batch));
    return;
  }
  finish_begun(options);
  const bool updated = step(batch, &batch).has_value();
  const std::int64_t every = options.checkpoints.every_steps;
  if (updated && every > 0 && state.global_steps % every == 0) save(options.checkpoints);
}

// The first step of a size is waited for, and one behind which something is to be done.
bool Trainer::Impl::may_go_ahead(const data::Batch& batch, const FitOptions& options) {
  if (!last_plan_ || batch.items() != last_items_ || !last_plan_->runs_ahead()) return false;
  const std::int64_t number = state.global_steps + std::ssize(begun_) + 1;
  const std::int64_t every = options.checkpoints.every_steps;
  if (every > 0 && number % every == 0) return false;
  if (options.max_steps > 0 && number >= options.max_steps) return false;
  if (rewind_ && rewind_->is_due(session())) return false;
  return std::ranges::none_of(callbacks,
                              [&](const auto& callback) { return callback->looks_at(number); });
}

// Those behind a step that was refused have changed nothing: they are taken again.
void Trainer::Impl::finish_first(const FitOptions& options) {
  data::Batch batch = std::move(begun_.front());
  begun_.pop_front();
  runtime::SessionData& inner = session().data();
  std::deque<data::Batch> behind;
  try {
    inner.look();
  } catch (...) {
    begun_.clear();
    throw;
  }
  if (!inner.finite()) {
    behind.swap(begun_);
    if (const std::optional<double> rate = scheduled_rate()) session().set_learning_rate(*rate);
  }
  end_step(batch, &batch, inner.last_step().looked_loss());
  for (data::Batch& again : behind) take(again, options);
}

void Trainer::Impl::finish_begun(const FitOptions& options) {
  while (!begun_.empty()) finish_first(options);
}

}  // namespace pantala
