// A Vulkan device that is open: one queue, on which everything runs in the order in which it was
// submitted, and a timeline that says how far it is.
//
// Errors: DeviceError for memory that is not there, DeviceLostError for a device that is lost; what
// was in its memory is then gone, and every later call says so.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "vulkan/instance.h"

namespace pantala::device::vulkan {

namespace vk = pantala::vulkan;

class Context {
 public:
  explicit Context(const vk::DeviceInfo& info);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const vk::DeviceInfo& info() const { return info_; }
  const vk::DeviceFunctions& functions() const { return f_; }
  VkDevice device() const { return device_; }
  // DeviceError unless it is success; `what` was being done.
  void check(VkResult result, std::string_view what) const;

  // The index of a type of memory that `allowed` holds and that has all of the flags, if there is
  // one.
  std::optional<std::uint32_t> memory_type(std::uint32_t allowed,
                                           VkMemoryPropertyFlags flags) const;

  VkCommandBuffer new_commands();
  void free_commands(VkCommandBuffer commands);
  // A command buffer that is recorded by `record`, submitted, and used again when it has finished.
  template <class Record>
  std::uint64_t once(const Record& record) {
    const Lent commands(*this);
    begin(commands.get(), true);
    record(commands.get());
    end(commands.get());
    return commands.submit({});
  }
  // The same in front of other commands; what the host reads of it they hand over to it.
  template <class Record>
  std::uint64_t before(const Record& record, VkCommandBuffer then) {
    const Lent commands(*this);
    begin(commands.get(), true);
    record(commands.get());
    check(f_.EndCommandBuffer(commands.get()), "recording");
    return commands.submit(then);
  }
  void begin(VkCommandBuffer commands, bool once) const;
  void end(VkCommandBuffer commands) const;
  // Everything before this point has happened for everything behind it.
  void barrier(VkCommandBuffer commands) const;
  // For what the host reads afterwards.
  void barrier_to_host(VkCommandBuffer commands) const;

  // Returns the ticket by which wait() knows it.
  std::uint64_t submit(std::span<const VkCommandBuffer> commands);
  std::uint64_t last_ticket() const { return submitted_; }
  void wait(std::uint64_t ticket) const;
  void wait() const { wait(submitted_); }
  // For what takes things away: nothing runs any more afterwards, also on a device that is lost.
  void come_to_rest() const noexcept;

 private:
  // Commands for one submission, which are used again when that has finished.
  class Lent {
   public:
    explicit Lent(Context& context) : context_(context), commands_(context.take_commands()) {}
    ~Lent() {
      if (!submitted_) context_.free_commands(commands_);
    }
    Lent(const Lent&) = delete;
    Lent& operator=(const Lent&) = delete;
    VkCommandBuffer get() const { return commands_; }
    // With others behind it, if there are any.
    std::uint64_t submit(VkCommandBuffer then) const;

   private:
    Context& context_;
    const VkCommandBuffer commands_;
    mutable bool submitted_ = false;
  };
  struct Empty {};
  Context(const vk::DeviceInfo& info, Empty);
  void open_device();
  VkCommandBuffer take_commands();

  const std::shared_ptr<const vk::Instance> instance_;
  const vk::DeviceInfo info_;
  vk::DeviceFunctions f_;
  VkPhysicalDeviceMemoryProperties memory_{};
  VkDevice device_ = nullptr;
  VkQueue queue_ = nullptr;
  std::uint32_t family_ = 0;
  VkCommandPool pool_ = nullptr;
  VkSemaphore timeline_ = nullptr;
  std::uint64_t submitted_ = 0;
  std::vector<std::pair<std::uint64_t, VkCommandBuffer>> in_use_;
  mutable bool lost_ = false;
};

}  // namespace pantala::device::vulkan
