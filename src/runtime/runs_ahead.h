// RunsAhead: the runs of a session's plans that nobody has waited for, in the order in which they
// were started. A run is handed to the device with numbers and inputs of its own and looked at
// later. Numbers of the host advance when it is started, as if it went well; if it did not, the
// device has left out what was started behind it, of whatever plan, and look() puts the numbers
// back. What was left out can be started again, with the same inputs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "device/device.h"
#include "runtime/bound_plan.h"

namespace pantala::runtime {

class RunsAhead {
 public:
  static constexpr std::size_t kMost = 3;

  // What a run is for, which says what follows from it.
  enum class Purpose : std::uint8_t {
    step,            // a whole training step
    micro_batch,     // a part of a window whose update is asked for by itself
    step_in_window,  // a part of a window; the one that completes it brings the update
    update,
  };
  struct Run {
    BoundPlan* plan = nullptr;
    Purpose purpose = Purpose::step;
    std::int64_t accumulated = 0;  // micro-batches that waited for their update before it
    BoundPlan::Start start = {};
    // Of a step in a window: what the update would find that came with it.
    std::vector<ir::Number> update = {};
    device::Ticket ticket = {};
  };

  explicit RunsAhead(device::Device& device);
  ~RunsAhead();
  RunsAhead(const RunsAhead&) = delete;
  RunsAhead& operator=(const RunsAhead&) = delete;

  bool are_possible() const { return results_.bytes > 0; }
  std::size_t size() const { return size_; }
  bool is_full() const { return size_ == kMost; }
  const Run& first() const { return runs_[first_]; }
  Run& last() { return at(size_ - 1); }
  // Whether one of them changes this number of the store.
  bool advance(std::size_t number) const;

  // There is room. The plan's inputs are those at hand, or those that it had before.
  void start(BoundPlan& plan, Purpose purpose, std::int64_t accumulated,
             const device::Slice& arena);
  void start_again(const Run& run, std::int64_t accumulated, const device::Slice& arena);
  // Waits for the first. If it is not done, or this throws what it reports, nothing is ahead any
  // more: those behind it have changed nothing.
  BoundPlan::Outcome look();
  // Of the run that was looked at.
  double looked_loss() const;
  // Those behind the run that was looked at, if it was not done, in their order.
  std::vector<Run> take_left_out() { return std::move(left_out_); }

 private:
  Run& at(std::size_t k) { return runs_[(first_ + k) % kMost]; }
  device::Slice kept(std::size_t k, std::int64_t offset, std::int64_t bytes) const;
  void submit(Run& run, const device::Slice& arena);

  device::Device& device_;
  std::array<Run, kMost> runs_;  // a ring
  std::size_t first_ = 0, size_ = 0;
  std::vector<Run> left_out_;
  const BoundPlan* looked_plan_ = nullptr;
  std::optional<std::size_t> looked_;  // whose result was kept; none: it is what outputs hold
  // What runs leave is kept by those behind them: status, flag and loss of each of the ring.
  device::Slice results_;
  std::vector<device::Move> moves_;
};

}  // namespace pantala::runtime
