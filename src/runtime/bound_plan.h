// BoundPlan: one compiled step on a device, bound to a Store, with memory for its inputs and
// outputs. Everything that a run needs is looked up when it is made: a run touches no name and
// allocates nothing.
//
// On a device that runs ahead (runs_ahead.h) a run can be taken apart: begin() takes its numbers
// and inputs, submit() hands it to the device, and somebody looks at what it has left later.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/trace.h"
#include "device/device.h"
#include "device/profile.h"
#include "plan/compiled_step.h"
#include "runtime/convert.h"
#include "runtime/store.h"

namespace pantala::runtime {

class RunsAhead;

// Named tensors in one block of device memory: the inputs or the outputs of a plan.
class PortBlock {
 public:
  struct Item {
    std::string name;
    Type type;
    IndexBounds bounds;
    device::Slice slice;
    std::byte* view = nullptr;  // where the host can reach it
    bool is_set = false;
    // Of an input: its values wait in the staging memory for the run that is started next; it was
    // so for the run that was started last.
    bool is_staged = false, was_staged = false;
  };
  PortBlock(device::Device& device, const plan::Plan& plan, plan::Storage storage,
            std::span<const plan::Port> ports);
  ~PortBlock();
  PortBlock(const PortBlock&) = delete;
  PortBlock& operator=(const PortBlock&) = delete;

  std::vector<Item>& items() { return items_; }
  const std::vector<Item>& items() const { return items_; }
  std::int64_t bytes() const { return bytes_; }
  device::Slice whole() const { return {memory_, 0, bytes_}; }
  const device::Slice& slice_of_region(std::uint32_t region) const;

 private:
  device::Device& device_;
  std::vector<Item> items_;
  std::vector<std::pair<std::uint32_t, device::Slice>> regions_;
  device::MemoryId memory_;
  std::int64_t bytes_ = 0;
};

class BoundPlan {
 public:
  // The store has all leaves of the plan. `ahead` is null for a plan that is always waited for.
  BoundPlan(std::string name, std::shared_ptr<const plan::CompiledStep> compiled,
            device::Device& device, Store& store, const RunsAhead* ahead = nullptr);
  ~BoundPlan();
  BoundPlan(const BoundPlan&) = delete;
  BoundPlan& operator=(const BoundPlan&) = delete;

  const std::string& name() const { return name_; }
  const plan::CompiledStep& compiled() const { return *compiled_; }
  std::int64_t arena_bytes() const { return compiled_->plan.arena_bytes; }
  device::PlanId id() const { return id_; }

  std::vector<std::string> input_names() const;
  std::vector<std::string> output_names() const;
  bool has_output(std::string_view name) const;
  // TypeErrors name the plan.
  const Type& input_type(std::string_view name) const;
  Type output_type(std::string_view name) const;
  // Nothing where the host cannot reach it.
  std::span<const std::byte> output_memory(std::string_view name) const;
  void set_input(std::string_view name, const HostElements& values);
  void set_input(std::string_view name, const Literal& value);
  // What a run has done to the store.
  enum class Outcome : std::uint8_t {
    done,     // counters have advanced
    refused,  // its guard has met a number that is not finite: nothing has changed
    spoilt,   // it has stored such a number; counters are as they were
  };
  // Launches are timed if `timing` is given.
  struct Timing {
    trace::Recorder* recorder = nullptr;  // null: times are only summed up
    device::RunTracks tracks = {};
    trace::Clock::duration shift = {};  // from the clock to the time line of the trace
  };
  // Nothing is ahead. `finished` is device::RunArguments::finished.
  Outcome run(const device::Slice& arena, Timing* timing = nullptr,
              std::atomic<std::int64_t>* finished = nullptr);

  // --- runs that nobody waits for (bound_plan_ahead.cpp)

  // What a run has been given that the next one of the plan is given anew.
  struct Start {
    std::vector<ir::Number> numbers = {};    // as it finds them
    std::optional<std::size_t> inputs = {};  // the part of the staging memory, if it has one
  };
  bool can_run_ahead() const;
  // Whether the run at hand can be started while others of the plan are ahead: it must be possible
  // to start those again, so all of them get the same inputs anew.
  bool fits_behind() const;
  // A number of the store that the session sets by what the runs before have done.
  void follow(std::size_t number);
  // Those that a run would find now.
  void take_numbers(std::vector<ir::Number>& numbers) const;
  // Takes what the run at hand was given; `is_first` if nothing is ahead.
  void begin(Start& start, bool is_first);
  // One that was left out: what users have set in between stays, counters go on from where they
  // are.
  void begin_again(Start& start) const;
  // Its inputs come from staging memory.
  void move_inputs(const Start& start, std::vector<device::Move>& moves) const;
  // With what the plan itself adds to the arguments; numbers advance.
  device::Ticket submit(const Start& start, device::RunArguments& arguments);
  // Numbers that the run has advanced are as it found them.
  void put_back(const Start& start);
  // Whether runs change this number of the store.
  bool advances(std::size_t number) const;

  // What a run has left: the guard's flag and the loss, where there are such.
  device::Slice guard() const { return finite_ ? finite_->slice : device::Slice{}; }
  device::Slice loss_memory() const { return loss_ ? loss_->slice : device::Slice{}; }
  bool is_finite() const;
  double loss_in(const std::byte* memory) const;
  // Of a status that was taken; with so many runs behind it that were left out. ValueError for what
  // a kernel reports.
  Outcome judge(std::int32_t status, bool finite, std::size_t left_out = 0) const;

  // TypeErrors name the plan.
  Literal output(std::string_view name) const;
  void output(std::string_view name, const HostBuffer& into) const;
  double output_scalar(std::string_view name) const;
  // The loss, found without its name.
  double loss() const;

  std::int64_t input_bytes() const { return inputs_.bytes(); }
  std::int64_t output_bytes() const { return outputs_.bytes(); }
  std::int64_t prepared_bytes() const { return prepared_.bytes(); }
  std::vector<KernelInfo> kernels() const;
  std::int64_t timed_runs() const { return timed_runs_; }
  double timed_milliseconds() const { return static_cast<double>(run_time_) * 1e-6; }

 private:
  void bind_regions(Store& store);
  void bind_numbers(Store& store);
  // Null if the plan reads none of this name.
  const PortBlock::Item* find_input(std::string_view name) const;
  PortBlock::Item* find_input(std::string_view name);
  // An input of the graph that the plan does not need; TypeError if the graph has none either.
  const plan::CompiledLeaf& unread_input(std::string_view name) const;
  template <class Values, class Check>
  void write_input(std::string_view name, const Values& values, const Check& check);
  [[noreturn]] void refuse_run() const;
  // So many runs behind it were left out.
  [[noreturn]] void report_status(std::int32_t code, std::size_t left_out) const;
  std::byte* staged_place(const PortBlock::Item& item);
  device::Ticket hand_over(const Start& start, device::RunArguments& arguments);
  void advance_numbers();
  void note_times(Timing& timing);
  // A device output; null for one that the host computes, or for an unknown name.
  const PortBlock::Item* find_output(std::string_view name) const;
  std::optional<std::size_t> find_host_output(std::string_view name) const;
  void check_has_run(std::string_view output) const;
  [[noreturn]] void refuse_output(std::string_view name) const;
  std::span<const std::byte> bytes(const PortBlock::Item& item,
                                   std::vector<std::byte>& space) const;

  std::string name_;
  std::shared_ptr<const plan::CompiledStep> compiled_;
  device::Device& device_;
  Store& store_;
  plan::HostPart host_;
  PortBlock inputs_, outputs_, prepared_;
  std::vector<std::byte> staging_;  // of inputs that the host cannot reach
  device::PlanId id_;
  std::vector<device::Slice> regions_;
  std::vector<std::int64_t> slots_;
  std::vector<std::size_t> number_of_;  // the store's entry of each of the host part's leaves
  std::vector<std::size_t> advanced_;   // those of them that a run changes
  std::vector<ir::Number> numbers_;
  std::size_t inputs_missing_ = 0;
  const PortBlock::Item* finite_ = nullptr;
  const PortBlock::Item* loss_ = nullptr;
  bool has_run_ = false;
  bool writes_store_ = false;
  // What is prepared follows from the store as it was at so many writes.
  std::optional<std::uint64_t> prepared_at_ = {};

  const RunsAhead* ahead_;
  std::vector<std::size_t> followed_;  // what begin_again() takes from the store
  bool last_was_first_ = false;        // nothing was ahead when the last run was started
  // A part for each run that may be ahead and the one at hand, each as the block of inputs.
  device::Slice staged_;
  std::size_t filling_ = 0;  // the part of the one at hand
  Start start_;              // of a run that is waited for
  std::vector<device::Move> moves_;

  std::optional<device::Profile> profile_;
  device::RunTimes times_;                  // of the last timed run
  std::vector<std::int64_t> launch_times_;  // nanoseconds of all timed runs
  std::int64_t timed_runs_ = 0, run_time_ = 0;
};

}  // namespace pantala::runtime
