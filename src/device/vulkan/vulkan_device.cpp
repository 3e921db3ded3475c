#include "device/vulkan/vulkan_device.h"

#include <fmt/format.h>

#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "device/vulkan/loaded_plan.h"
#include "pantala/error.h"

namespace pantala::device::vulkan {

namespace {

class VulkanDevice final : public Device {
 public:
  VulkanDevice(const vk::DeviceInfo& info, const DeviceOptions& options)
      : threads_(options.workers == 0 ? default_workers() : options.workers),
        sentinels_(options.sentinels),
        context_(info),
        pipelines_(context_, options.cache_file),
        memory_(context_, options.sentinels),
        gate_(context_) {}
  ~VulkanDevice() override { context_.come_to_rest(); }

  std::string_view name() const override { return "vulkan"; }
  std::string description() const override {
    return fmt::format("vulkan, {} ({})", context_.info().name, context_.info().driver);
  }

  MemoryId allocate(std::int64_t bytes) override {
    const std::lock_guard lock(mutex_);
    return memory_.allocate(bytes);
  }
  MemoryId allocate_staging(std::int64_t bytes) override {
    const std::lock_guard lock(mutex_);
    return memory_.allocate(bytes, Block::Kind::host);
  }
  void free(MemoryId memory) override {
    const std::lock_guard lock(mutex_);
    memory_.free(memory);
  }
  void write(const Slice& to, std::span<const std::byte> from) override {
    const std::lock_guard lock(mutex_);
    memory_.write(to, from);
  }
  void read(const Slice& from, std::span<std::byte> to) override {
    const std::lock_guard lock(mutex_);
    memory_.read(from, to);
  }
  void copy(const Slice& from, const Slice& to) override {
    const std::lock_guard lock(mutex_);
    memory_.copy(from, to);
  }
  std::byte* host_view(MemoryId memory) override {
    const std::lock_guard lock(mutex_);
    return memory_.view(memory);
  }

  PlanId load(plan::Plan plan) override {
    validate(plan);
    const std::lock_guard lock(mutex_);
    auto loaded =
        std::make_unique<LoadedPlan>(std::move(plan), context_, pipelines_, gate_, threads_);
    const PlanId id{++last_plan_};
    loaded_.emplace(id, std::move(loaded));
    return id;
  }
  void unload(PlanId plan) override {
    const std::lock_guard lock(mutex_);
    find(plan);
    loaded_.erase(plan);
  }

  bool runs_ahead() const override { return true; }
  Ticket run(PlanId plan, const RunArguments& arguments) override {
    const std::lock_guard lock(mutex_);
    const Ticket ticket = find(plan).run(arguments, memory_);
    if (sentinels_) memory_.check_sentinels();
    return ticket;
  }
  void wait(Ticket run) override {
    const std::lock_guard lock(mutex_);
    context_.wait(run.number);
  }
  void wait() override {
    const std::lock_guard lock(mutex_);
    context_.wait();
  }
  std::int32_t take_status() override {
    const std::lock_guard lock(mutex_);
    context_.wait();
    std::int32_t status = 0;
    std::memcpy(&status, gate_.status().view(), sizeof(status));
    std::memset(gate_.status().view(), 0, sizeof(status));
    return status;
  }

  MemorySummary memory() const override {
    const std::lock_guard lock(mutex_);
    MemorySummary summary{.allocated = memory_.allocated(),
                          .peak_allocated = memory_.peak_allocated()};
    for (const auto& [id, plan] : loaded_) {
      summary.constants += plan->constant_bytes();
      summary.scratch += plan->scratch_bytes();
    }
    return summary;
  }
  void check_sentinels() const override {
    const std::lock_guard lock(mutex_);
    memory_.check_sentinels();
  }

 private:
  LoadedPlan& find(PlanId plan) {
    const auto found = loaded_.find(plan);
    if (found == loaded_.end())
      throw TypeError(fmt::format("vulkan: there is no plan {}", plan.id));
    return *found->second;
  }

  mutable std::mutex mutex_;
  const int threads_;
  const bool sentinels_;
  Context context_;
  Pipelines pipelines_;
  mutable Memory memory_;
  Gate gate_;
  std::map<PlanId, std::unique_ptr<LoadedPlan>> loaded_;
  std::uint64_t last_plan_ = 0;
};

}  // namespace

std::unique_ptr<Device> make_vulkan_device(std::string_view choice, const DeviceOptions& options) {
  return std::make_unique<VulkanDevice>(vk::choose(choice), options);
}

}  // namespace pantala::device::vulkan
