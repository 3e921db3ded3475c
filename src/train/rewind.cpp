#include "train/rewind.h"

#include <algorithm>
#include <bit>
#include <span>

#include "pantala/error.h"

namespace pantala::train {

namespace {

// The batches that are kept take at most so much memory, and are at most so many.
constexpr std::int64_t kMostBytes = std::int64_t{16} << 20;
constexpr std::size_t kMostSteps = 1024;
// Going back takes about as long as the steps took.
constexpr std::chrono::seconds kLongest{30};
// Copies may take this part of the time at most.
constexpr int kSmallPart = 100;

std::int64_t bytes_of(const data::Array& array) {
  return std::visit(
      [](const auto& list) {
        return static_cast<std::int64_t>(list.size() * sizeof(*list.data()));
      },
      array.values);
}
std::int64_t bytes_of(const data::Batch& batch) {
  std::int64_t bytes = bytes_of(batch.data) + bytes_of(batch.labels);
  for (const data::NamedArray& other : batch.more) bytes += bytes_of(other.array);
  return bytes;
}

bool is_same(const ir::Number& a, const ir::Number& b) {
  return a.integral == b.integral && a.i == b.i &&
         std::bit_cast<std::uint64_t>(a.f) == std::bit_cast<std::uint64_t>(b.f);
}

// Room for another batch of this kind.
void reserve_like(const data::Array& like, data::Array& array) {
  std::visit(
      [&](const auto& list) {
        std::decay_t<decltype(list)> room;
        room.reserve(list.size());
        array.values = std::move(room);
      },
      like.values);
}

}  // namespace

bool Rewind::is_due(Session& session) const {
  if (!copy_.is_taken() || session.data().store().changes() != changes_) return true;
  if (used_ == 0) return false;
  if (used_ + count_ >= steps_.size() ||
      bytes_ + bytes_ / static_cast<std::int64_t>(used_) > kMostBytes)
    return true;
  return Clock::now() - taken_ > std::max<Clock::duration>(kLongest, kSmallPart * cost_);
}

void Rewind::take(runtime::SessionData& session) {
  const Clock::time_point begin = Clock::now();
  copy_.take(session);
  used_ = 0;
  bytes_ = 0;
  numbers_ = session.store().numbers();
  for (Begun& step : begun_) {
    step.before.reserve(numbers_.size());
    step.after.reserve(numbers_.size());
  }
  changes_ = session.store().changes();
  taken_ = Clock::now();
  cost_ = taken_ - begin;
}

void Rewind::before_step(Session& session) {
  runtime::SessionData& data = session.data();
  if (data.ahead() == 0) count_ = 0;  // one that threw is forgotten
  if (is_due(session)) take(data);
  begun(count_++).before = data.store().numbers();
}

void Rewind::started(Session& session) {
  begun(count_ - 1).after = session.data().store().numbers();
}

// The step that comes next in `steps_`, with the numbers that it began with.
void Rewind::begin(const data::Batch& batch, bool reserve) {
  if (steps_.empty()) {
    const std::int64_t size = std::max<std::int64_t>(1, bytes_of(batch));
    steps_.resize(
        std::clamp<std::size_t>(static_cast<std::size_t>(kMostBytes / size), 1, kMostSteps));
    for (Step& step : steps_) {
      step.numbers.reserve(numbers_.size());
      if (!reserve) continue;
      reserve_like(batch.data, step.batch.data);
      reserve_like(batch.labels, step.batch.labels);
    }
  }
  Step& step = steps_[used_];
  step.numbers = begun(0).before;
  step.sets_numbers = !std::ranges::equal(step.numbers, numbers_, is_same);
}

void Rewind::finish(const data::Batch& batch) {
  bytes_ += bytes_of(batch);
  ++used_;
  numbers_ = begun(0).after;
  first_ = (first_ + 1) % begun_.size();
  --count_;
}

void Rewind::add(data::Batch&& batch) {
  begin(batch, false);
  steps_[used_].batch = std::move(batch);
  finish(steps_[used_].batch);
}

void Rewind::add(const data::Batch& batch) {
  begin(batch, true);
  steps_[used_].batch = batch;
  finish(batch);
}

void Rewind::go_back(Plans& plans) {
  Session& session = plans.session();
  copy_.restore(session.data());
  for (const Step& step : std::span(steps_).first(used_)) {
    if (step.sets_numbers) session.data().store().set_numbers(step.numbers);
    plans.step_on(step.batch).run();
    if (!session.last_step_finite())
      throw InternalError("a step that went well does not when it is run again");
  }
  session.data().store().set_numbers(begun(0).before);
  count_ = 0;
  session.data().undo_step(session.accumulated());
  changes_ = session.data().store().changes();
  numbers_ = session.data().store().numbers();
}

}  // namespace pantala::train
