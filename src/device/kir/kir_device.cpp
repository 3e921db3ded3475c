#include "device/kir/kir_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "device/float_environment.h"
#include "device/host_device.h"
#include "kir/interpret.h"
#include "pantala/error.h"
#include "plan/dependencies.h"

namespace pantala::device::kernel_ir {

namespace {

ir::Number number_of(std::int64_t slot, DType dtype) {
  switch (dtype) {
    case DType::f32:
      return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(slot)));
    case DType::f64:
      return std::bit_cast<double>(slot);
    case DType::i32:
      return ir::Number::of(static_cast<std::int32_t>(slot));
    default:
      return ir::Number::of(slot);
  }
}

class KirDevice final : public HostDevice {
 public:
  using HostDevice::HostDevice;

  std::string_view name() const override { return "kir"; }
  std::string description() const override { return "kir, the interpreter of kernels"; }

  PlanId load(plan::Plan plan) override {
    validate(plan);
    check_dependencies(plan);
    for (const plan::Unit& unit : plan.units)
      if (!unit.kernel)
        throw DeviceError(fmt::format("plan '{}': unit '{}' is compiled code without its kernel",
                                      plan.name, unit.entry));
    const std::lock_guard lock(mutex_);
    const PlanId id{++last_plan_};
    Binder binder(plan);
    loaded_.emplace(id, Loaded{std::move(plan), std::move(binder)});
    return id;
  }
  void unload(PlanId plan) override {
    const std::lock_guard lock(mutex_);
    find(plan);
    loaded_.erase(plan);
  }

  Ticket run(PlanId id, const RunArguments& arguments) override {
    const std::lock_guard lock(mutex_);
    const DefaultFloatEnvironment environment;
    Loaded& loaded = find(id);
    loaded.binder.bind(loaded.plan, arguments, memory_);
    std::byte* arena = loaded.binder.bases()[0];
    if (arena) std::memset(arena, 0xFF, static_cast<std::size_t>(loaded.plan.arena_bytes));
    if (sentinels_) loaded.binder.gaps().write_sentinels(arena);
    run_launches(loaded, arguments);
    if (!sentinels_) return {};
    loaded.binder.gaps().check_sentinels(arena, loaded.plan);
    check_all_sentinels();
    return {};
  }
  std::int32_t take_status() override {
    const std::lock_guard lock(mutex_);
    return std::exchange(status_, 0);
  }

  MemorySummary memory() const override {
    const std::lock_guard lock(mutex_);
    MemorySummary summary{.allocated = memory_.allocated(),
                          .peak_allocated = memory_.peak_allocated()};
    for (const auto& [id, loaded] : loaded_) summary.constants += std::ssize(loaded.plan.constants);
    return summary;
  }

 private:
  struct Loaded {
    plan::Plan plan;
    Binder binder;
  };

  Loaded& find(PlanId plan) {
    const auto found = loaded_.find(plan);
    if (found == loaded_.end()) throw TypeError(fmt::format("kir: there is no plan {}", plan.id));
    return found->second;
  }

  void run_launches(const Loaded& loaded, const RunArguments& arguments) {
    ArenaPoison poison(loaded.binder.gaps(), loaded.binder.bases()[0], loaded.plan);
    RunTimes* times = arguments.times;
    const auto begin = std::chrono::steady_clock::now();
    const auto elapsed = [&] {
      return std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count();
    };
    if (times) {
      times->begin = begin;
      times->launches.resize(loaded.plan.launches.size());
      times->shares.resize(loaded.plan.launches.size());
    }
    const std::size_t first = arguments.is_prepared ? loaded.plan.preparation : 0;
    if (times) std::fill_n(times->shares.begin(), first, ShareTime{});
    for (std::size_t k = first; k < loaded.plan.launches.size(); ++k) {
      const plan::Launch& launch = loaded.plan.launches[k];
      poison.only(launch);
      const std::int64_t start = times ? elapsed() : 0;
      for (const plan::ArgumentSet& set : launch.sets)
        run_set(loaded, loaded.plan.units[launch.unit], set, arguments.uniforms);
      if (times) times->shares[k] = {start, elapsed(), launch.items()};
    }
    if (!times) return;
    times->duration = elapsed();
    times->sum_up();
  }

  void run_set(const Loaded& loaded, const plan::Unit& unit, const plan::ArgumentSet& set,
               std::span<const std::int64_t> uniforms) {
    kir::Arguments arguments;
    for (const std::uint32_t b : set.buffers) {
      const plan::Buffer& buffer = loaded.plan.buffers[b];
      std::byte* base = loaded.binder.bases()[Binder::base_of(buffer)];
      arguments.buffers.push_back(
          {buffer.dtype, base ? base + buffer.offset : nullptr, buffer.elements});
    }
    for (std::size_t k = 0; k < set.params.size(); ++k) {
      const plan::Scalar& s = set.params[k];
      arguments.params.push_back(
          number_of(s.is_uniform ? uniforms[static_cast<std::size_t>(s.value)] : s.value,
                    unit.signature.params[k]));
    }
    const std::int64_t status = kir::interpret(*unit.kernel, arguments, 0, set.items);
    if (status != 0) status_ = static_cast<std::int32_t>(status);
  }

  std::map<PlanId, Loaded> loaded_;
  std::uint64_t last_plan_ = 0;
  std::int32_t status_ = 0;
};

}  // namespace

std::unique_ptr<Device> make_kir_device(const DeviceOptions& options) {
  return std::make_unique<KirDevice>(options);
}

Description describe_kir(bool) {
  return {
      .text =
          "the interpreter of kernels: the bits of the CPU, with bounds and races checked; slow",
      .brief = "the interpreter of kernels, which checks everything and is slow",
      .checks = true};
}

}  // namespace pantala::device::kernel_ir
