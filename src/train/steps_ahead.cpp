// Steps of a run that nobody waits for: on a device that computes by itself the next batches are
// handed over while a step runs, and the loss comes down later. Whenever somebody looks (a
// callback, a checkpoint, the end of the epoch) all that was begun has been told before.
#include <algorithm>
#include <utility>

#include "runtime/session_data.h"
#include "train/trainer_impl.h"

namespace pantala {

// A micro-batch that completes its window brings the update with it.
bool Trainer::Impl::has_room_for_another() {
  return session().data().has_room_ahead(window_is_complete(1) ? 2 : 1);
}

std::int64_t Trainer::Impl::updates_begun() const {
  return std::ranges::count_if(begun_, &BegunStep::updates);
}

// The step is told when this returns, or begun.
void Trainer::Impl::take(data::Batch& batch, const FitOptions& options) {
  if (sharded_) {
    const bool updated = take_sharded(batch, true).has_value();
    const std::int64_t every = options.checkpoints.every_steps;
    if (updated && every > 0 && state.global_steps % every == 0) save(options.checkpoints);
    return;
  }
  while (!begun_.empty() && !has_room_for_another()) finish_first(options);
  if (may_go_ahead(batch, options)) return begin(batch);
  finish_begun(options);
  const bool updated = step(batch, &batch).has_value();
  const std::int64_t every = options.checkpoints.every_steps;
  if (updated && every > 0 && state.global_steps % every == 0) save(options.checkpoints);
}

void Trainer::Impl::begin(data::Batch& batch) {
  check_values();
  if (begun_.empty()) session().data().settle();
  begin_step(batch);
  const bool updates = !session().splits_update() || window_is_complete();
  if (session().splits_update() && updates) session().data().apply_behind();
  begun_.push_back({std::move(batch), updates});
}

// The first step of a size is waited for, and one behind which something is to be done.
bool Trainer::Impl::may_go_ahead(const data::Batch& batch, const FitOptions& options) {
  if (!last_plan_ || batch.items() != last_items_ || !last_plan_->runs_ahead()) return false;
  if (rewind_ && rewind_->is_due(session())) return false;
  if (session().splits_update() && !window_is_complete(1)) return true;
  const std::int64_t number = state.global_steps + updates_begun() + 1;
  const std::int64_t every = options.checkpoints.every_steps;
  if (every > 0 && number % every == 0) return false;
  if (options.max_steps > 0 && number >= options.max_steps) return false;
  return std::ranges::none_of(callbacks,
                              [&](const auto& callback) { return callback->looks_at(number); });
}

// Those behind a step that was refused have changed nothing: they are taken again.
void Trainer::Impl::finish_first(const FitOptions& options) {
  BegunStep first = std::move(begun_.front());
  begun_.pop_front();
  runtime::SessionData& inner = session().data();
  std::deque<BegunStep> behind;
  // Whether what was looked at went well; if not, the rate is that of the next step again.
  const auto look = [&] {
    try {
      inner.look();
    } catch (...) {
      begun_.clear();
      throw;
    }
    if (inner.finite()) return true;
    behind.swap(begun_);
    if (const std::optional<double> rate = scheduled_rate()) session().set_learning_rate(*rate);
    return false;
  };
  const bool went_well = look();
  end_step(first.batch, &first.batch, inner.looked_loss());
  if (went_well && first.updates && session().splits_update()) {
    look();
    end_window(&first.batch);
  }
  for (BegunStep& again : behind) take(again.batch, options);
}

void Trainer::Impl::finish_begun(const FitOptions& options) {
  while (!begun_.empty()) finish_first(options);
}

}  // namespace pantala
