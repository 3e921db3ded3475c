#include "runtime/runs_ahead.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/convert.h"

namespace pantala::runtime {

namespace {

// A kept result: the status, the guard's flag, the loss.
constexpr std::int64_t kResultBytes = 64, kFlagAt = 4, kLossAt = 8;

}  // namespace

RunsAhead::RunsAhead(device::Device& device) : device_(device) {
  if (!device_.runs_ahead()) return;
  constexpr auto kBytes = kResultBytes * static_cast<std::int64_t>(kMost);
  results_ = {device_.allocate_staging(kBytes), 0, kBytes};
}

RunsAhead::~RunsAhead() {
  if (results_.bytes > 0) device_.free(results_.memory);
}

bool RunsAhead::advance(std::size_t number) const {
  for (std::size_t k = 0; k < size_; ++k)
    if (runs_[(first_ + k) % kMost].plan->advances(number)) return true;
  return false;
}

device::Slice RunsAhead::kept(std::size_t k, std::int64_t offset, std::int64_t bytes) const {
  const auto place = static_cast<std::int64_t>((first_ + k) % kMost);
  return {results_.memory, place * kResultBytes + offset, bytes};
}

void RunsAhead::start(BoundPlan& plan, Purpose purpose, std::int64_t accumulated,
                      const device::Slice& arena) {
  Run& run = at(size_);
  run.plan = &plan;
  run.purpose = purpose;
  run.accumulated = accumulated;
  plan.begin(run.start, size_ == 0);
  submit(run, arena);
}

void RunsAhead::start_again(const Run& run, std::int64_t accumulated, const device::Slice& arena) {
  Run& again = at(size_);
  again = run;
  again.accumulated = accumulated;
  again.plan->begin_again(again.start);
  submit(again, arena);
}

// A run that comes behind another keeps what that one has left before it overwrites it.
void RunsAhead::submit(Run& run, const device::Slice& arena) {
  device::RunArguments arguments{.arena = arena, .regions = {}, .uniforms = {}};
  moves_.clear();
  if (size_ > 0) {
    const BoundPlan& before = *at(size_ - 1).plan;
    arguments.is_behind = true;
    arguments.guard = before.guard();
    arguments.status_before = kept(size_ - 1, 0, 4);
    if (arguments.guard.bytes > 0) moves_.push_back({arguments.guard, kept(size_ - 1, kFlagAt, 1)});
    if (const device::Slice loss = before.loss_memory(); loss.bytes > 0)
      moves_.push_back({loss, kept(size_ - 1, kLossAt, loss.bytes)});
  }
  run.plan->move_inputs(run.start, moves_);
  arguments.before = moves_;
  run.ticket = run.plan->submit(run.start, arguments);
  ++size_;
}

BoundPlan::Outcome RunsAhead::look() {
  std::int32_t status = 0;
  bool finite = true;
  const Run& run = at(0);
  BoundPlan& plan = *run.plan;
  looked_plan_ = &plan;
  looked_.reset();
  left_out_.clear();
  if (size_ > 1) {
    looked_ = first_;
    device_.wait(at(1).ticket);  // which has kept the result
    const std::byte* result = device_.host_view(results_.memory) + kept(0, 0, 0).offset;
    std::memcpy(&status, result, sizeof(status));
    finite = plan.guard().bytes == 0 || result[kFlagAt] != std::byte{0};
  } else {
    status = device_.take_status();
    finite = plan.is_finite();
  }
  first_ = (first_ + 1) % kMost;
  --size_;
  if (status == 0 && finite) return BoundPlan::Outcome::done;
  for (; size_ > 0; --size_, first_ = (first_ + 1) % kMost) left_out_.push_back(at(0));
  if (!left_out_.empty()) device_.take_status();  // waits for those, too
  for (auto left = left_out_.rbegin(); left != left_out_.rend(); ++left)
    left->plan->put_back(left->start);
  plan.put_back(run.start);
  return plan.judge(status, finite, left_out_.size());
}

double RunsAhead::looked_loss() const {
  if (!looked_) return looked_plan_->loss();
  return looked_plan_->loss_in(device_.host_view(results_.memory) +
                               static_cast<std::int64_t>(*looked_) * kResultBytes + kLossAt);
}

}  // namespace pantala::runtime
