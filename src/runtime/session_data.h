// SessionData: what stands behind Session. The device, the store on it, the plans bound to both,
// and the arena that the plans share, in this order of life.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/trace.h"
#include "device/device.h"
#include "io/safetensors_write.h"
#include "pantala/session.h"
#include "runtime/bound_plan.h"
#include "runtime/runs_ahead.h"
#include "runtime/store.h"
#include "runtime/store_leaves.h"

namespace pantala::runtime {

class SessionData {
 public:
  SessionData(const CompileResult& compiled, const SessionOptions& options);
  ~SessionData();
  SessionData(const SessionData&) = delete;
  SessionData& operator=(const SessionData&) = delete;

  // Return the index of the new plan.
  std::size_t attach(std::string_view name, const CompiledPlan& plan);
  std::size_t attach_step(std::string_view name, const CompiledPlan& plan);
  std::size_t find_plan(std::string_view name) const;
  BoundPlan& plan(std::size_t index) { return *plans_[index]; }
  const std::vector<std::unique_ptr<BoundPlan>>& plans() const { return plans_; }
  BoundPlan& main() { return *plans_[0]; }
  // The step that ran last, of whatever batch size; main() before the first.
  BoundPlan& last_step() { return *plans_[last_step_]; }
  // last_step(), or the plan that applies if only that has this output.
  BoundPlan& step_with(std::string_view output);

  Store& store() { return store_; }
  device::Device& device() { return *device_; }
  Report& report() { return report_; }
  const PlanData& main_data() const { return main_data_; }

  // What a run means depends on the plan's part in the session. On a device that runs ahead a step
  // is only started: whoever wants to know what it has done asks for settled() first.
  void run(std::size_t index);
  // All steps that were started have been looked at, those behind a bad one started again.
  // ValueError as Session::step(); steps behind that one are given up.
  void settle();
  SessionData& settled() {
    settle();
    return *this;
  }
  // Runs that were started and not looked at, and whether others can be started behind them.
  std::size_t ahead() const { return ahead_.size(); }
  bool has_room_ahead(std::size_t runs) const { return ahead() + runs <= RunsAhead::kMost; }
  // Whether run() only starts the step.
  bool runs_ahead(std::size_t index) const;
  // Looks at the first that is ahead; if it is not done, those behind it are given up.
  BoundPlan::Outcome look();
  double looked_loss() const { return ahead_.looked_loss(); }
  // Of runs from now on: device::RunArguments::finished; null: nobody looks.
  void tell_finished(std::atomic<std::int64_t>* finished) { finished_ = finished; }
  // One micro-batch without the update.
  void accumulate(std::size_t index);
  void apply();
  // Started, to come behind micro-batches that may still turn out not to be finite.
  void apply_behind();
  bool splits_update() const { return apply_.has_value(); }
  // By which what was accumulated is divided.
  double accumulated_weight() const;
  bool finite() const { return outcome_ == BoundPlan::Outcome::done; }
  bool spoilt() const { return outcome_ == BoundPlan::Outcome::spoilt; }
  // The values of before the last step are there again, where `accumulated` micro-batches waited.
  void undo_step(std::int64_t accumulated) {
    outcome_ = BoundPlan::Outcome::refused;
    accumulated_ = accumulated;
  }
  // As if so many micro-batches waited: what sums them elsewhere says so. With 0 the next one
  // begins the sums anew.
  void set_accumulated(std::int64_t micro_batches) {
    accumulated_ = 0;
    begin_micro_batch();
    accumulated_ = micro_batches;
  }
  // As if all that is ahead went well.
  std::int64_t accumulated() const { return accumulated_; }
  std::int64_t accumulation_steps() const { return accumulation_steps_; }

  Literal gradient(std::string_view parameter);
  void set_gradient(std::string_view parameter, const Literal& value);

  double scalar(std::string_view name);
  void set_scalar(std::string_view name, double value);
  // TypeError saying what the session lacks.
  void need_optimizer(std::string_view scalar, std::string_view what) const;
  std::string factor_scalar(std::string_view pattern) const;

  // With `others` that are somebody else's, and belong to the file.
  void save(const std::filesystem::path& path, Saved what,
            std::span<const io::TensorBytes> others = {}) const;
  // What is in the file under names of these patterns and not in the store is somebody else's.
  void load(const std::filesystem::path& path, Saved what,
            const std::vector<std::string>& of_others = {});
  LoadWeightsReport load_weights(const Weights& weights, const LoadWeightsOptions& options);
  Weights weights() const;
  SessionMemory memory() const;
  void set_timing(bool on, bool spans) {
    is_timed_ = on;
    timing_.recorder = spans ? &recorder_ : nullptr;
  }
  void add_span(std::string_view name, std::string_view category, trace::Clock::time_point begin,
                bool lasts);
  void write_trace(const std::filesystem::path& path) const;

 private:
  // A plan's part in the session: steps and `apply` move training on, others are just run.
  enum class Part : std::uint8_t { other, step, apply };

  BoundPlan::Outcome run_plan(std::size_t index) {
    return plans_[index]->run(arena_, is_timed_ ? &timing_ : nullptr, finished_);
  }
  void start(std::size_t index, RunsAhead::Purpose purpose);
  void start_again(const RunsAhead::Run& run);
  void look_and_go_on();
  void complete_window();
  void take_micro_batch(std::size_t index, bool completes);
  void begin_micro_batch();
  void settle_for(const Store::Entry& entry);
  void add(std::string name, std::shared_ptr<const plan::CompiledStep> step, Part part);
  std::size_t add_attached(std::string_view name, const PlanData& data, Part part);
  void check_new_name(std::string_view name) const;
  // TypeError for what only a session with a split update can do.
  void need_split(std::string_view what) const;
  // Where the gradient of a parameter is summed; TypeError for a frozen one.
  const Store::Entry& accumulator_of(std::string_view parameter) const;
  void fit_arena(std::int64_t needed);
  void record_stages();
  std::vector<const Store::Entry*> saved_entries(Saved what) const;

  PlanData main_data_;
  std::string device_name_;  // as it was asked for: "vulkan:1"
  std::unique_ptr<device::Device> device_;
  Store store_;
  RunsAhead ahead_;
  std::vector<std::unique_ptr<BoundPlan>> plans_;
  std::vector<Part> parts_;  // of the plans
  device::Slice arena_;
  Report report_;
  const std::int64_t accumulation_steps_;
  std::int64_t accumulated_ = 0;
  std::size_t last_step_ = 0;
  std::optional<std::size_t> apply_;                       // the plan, where the update is split
  std::optional<std::size_t> first_micro_batch_;           // the store's number
  BoundPlan::Outcome outcome_ = BoundPlan::Outcome::done;  // of the last step
  static constexpr std::size_t kMostSpans = std::size_t{1} << 18;
  trace::Recorder recorder_{"pantala", kMostSpans};
  BoundPlan::Timing timing_;
  bool is_timed_ = false;
  std::atomic<std::int64_t>* finished_ = nullptr;
};

}  // namespace pantala::runtime
