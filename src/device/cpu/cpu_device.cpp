#include "device/cpu/cpu_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>

#include "device/cpu/loaded_plan.h"
#include "device/cpu/pool.h"
#include "device/float_environment.h"
#include "device/host_device.h"
#include "pantala/error.h"

namespace pantala::device::cpu {

namespace {

int worker_count(const DeviceOptions& options) {
  if (options.workers < 0 || options.workers > kMaxWorkers)
    throw DeviceError(fmt::format("{} workers are asked for; from 1 to {} are possible",
                                  options.workers, kMaxWorkers));
  return options.workers == 0 ? default_workers() : options.workers;
}

// Spinning helps only if the worker that is waited for can run meanwhile.
std::chrono::microseconds spin_time(const DeviceOptions& options) {
  return std::chrono::microseconds(
      worker_count(options) > default_workers() ? 0 : std::max(0, options.spin_microseconds));
}

class CpuDevice final : public HostDevice {
 public:
  explicit CpuDevice(const DeviceOptions& options)
      : HostDevice(options),
        pool_(worker_count(options), spin_time(options)),
        states_(static_cast<std::size_t>(pool_.workers())) {}

  std::string_view name() const override { return "cpu"; }
  std::string description() const override {
    const codegen::HostTarget host = codegen::detect_host();
    return fmt::format("cpu, {} workers, {}, vectors of {} bytes", pool_.workers(), host.cpu,
                       host.vector_bytes);
  }

  PlanId load(plan::Plan plan) override {
    validate(plan);
    // Compiling takes long and touches nothing of the device: the lock is taken for the result.
    auto loaded = std::make_unique<LoadedPlan>(std::move(plan), pool_.workers());
    const std::lock_guard lock(mutex_);
    grow_scratch(loaded->plan().scratch_bytes);
    constants_ += std::ssize(loaded->plan().constants);
    const PlanId id{++last_plan_};
    loaded_.emplace(id, std::move(loaded));
    return id;
  }
  void unload(PlanId plan) override {
    const std::lock_guard lock(mutex_);
    constants_ -= std::ssize(find(plan).plan().constants);
    loaded_.erase(plan);
  }

  Ticket run(PlanId plan, const RunArguments& arguments) override {
    const std::lock_guard lock(mutex_);
    const DefaultFloatEnvironment environment;
    LoadedPlan& loaded = find(plan);
    loaded.bind(arguments, memory_);
    if (sentinels_) loaded.gaps().write_sentinels(loaded.arena());
    {
      const ArenaPoison poison(loaded.gaps(), loaded.arena(), loaded.plan());
      if (arguments.times)
        walk_timed(loaded, arguments.finished, *arguments.times);
      else
        walk(loaded, arguments.finished);
    }
    if (!sentinels_) return {};
    loaded.gaps().check_sentinels(loaded.arena(), loaded.plan());
    check_all_sentinels();
    return {};
  }
  std::int32_t take_status() override {
    const std::lock_guard lock(mutex_);
    std::int32_t status = 0;
    for (WorkerState& state : states_) {
      if (status == 0) status = state.status;
      state.status = 0;
    }
    return status;
  }

  MemorySummary memory() const override {
    const std::lock_guard lock(mutex_);
    std::int64_t scratch = 0;
    for (const HostBlock& block : scratch_) scratch += block.bytes();
    return {.allocated = memory_.allocated(),
            .peak_allocated = memory_.peak_allocated(),
            .scratch = scratch,
            .constants = constants_};
  }

 protected:
  void check_all_sentinels() const override {
    HostDevice::check_all_sentinels();
    for (std::size_t k = 0; k < scratch_.size(); ++k)
      scratch_[k].check_sentinels(fmt::format("scratch of worker {}", k));
  }

 private:
  struct Context {
    const LoadedPlan& loaded;
    WorkerPool& pool;
    std::vector<WorkerState>& states;
    LoadedPlan::Finished finished = nullptr;
    RunTimes* times = nullptr;
  };

  void walk(const LoadedPlan& loaded, LoadedPlan::Finished finished) {
    Context context{loaded, pool_, states_, finished};
    pool_.run(
        [](void* opaque, int worker) {
          const Context& c = *static_cast<Context*>(opaque);
          c.loaded.walk(c.pool, worker, c.states[static_cast<std::size_t>(worker)], c.finished);
        },
        &context);
  }

  void walk_timed(const LoadedPlan& loaded, LoadedPlan::Finished finished, RunTimes& times) {
    const std::size_t launches = loaded.plan().launches.size();
    times.launches.resize(launches);
    times.shares.resize(launches * states_.size());
    times.begin = std::chrono::steady_clock::now();
    Context context{loaded, pool_, states_, finished, &times};
    pool_.run(
        [](void* opaque, int worker) {
          const Context& c = *static_cast<Context*>(opaque);
          c.loaded.walk_timed(c.pool, worker, c.states[static_cast<std::size_t>(worker)],
                              c.finished, *c.times);
        },
        &context);
    times.duration =
        std::chrono::nanoseconds(std::chrono::steady_clock::now() - times.begin).count();
    times.sum_up();
  }

  LoadedPlan& find(PlanId plan) {
    const auto found = loaded_.find(plan);
    if (found == loaded_.end()) throw TypeError(fmt::format("cpu: there is no plan {}", plan.id));
    return *found->second;
  }

  // Plans run one at a time and share the scratch of the largest.
  void grow_scratch(std::int64_t bytes) {
    if (bytes == 0 || (!scratch_.empty() && scratch_[0].bytes() >= bytes)) return;
    std::vector<HostBlock> blocks;
    for (std::size_t k = 0; k < states_.size(); ++k) blocks.emplace_back(bytes, sentinels_);
    scratch_ = std::move(blocks);
    for (std::size_t k = 0; k < states_.size(); ++k) states_[k].scratch = scratch_[k].data();
  }

  std::map<PlanId, std::unique_ptr<LoadedPlan>> loaded_;
  std::uint64_t last_plan_ = 0;
  std::int64_t constants_ = 0;
  WorkerPool pool_;
  std::vector<WorkerState> states_;  // by worker
  std::vector<HostBlock> scratch_;   // by worker
};

}  // namespace

std::unique_ptr<Device> make_cpu_device(const DeviceOptions& options) {
  return std::make_unique<CpuDevice>(options);
}

}  // namespace pantala::device::cpu
