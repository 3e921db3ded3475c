// Vulkan on this machine: the loader, which is opened at run time, and the devices that its drivers
// offer, as plain numbers. Nothing here computes anything; whoever wants to know what a kernel may
// use or which devices there are asks here.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "vulkan/functions.h"

namespace pantala::vulkan {

// A device as its driver describes it.
struct DeviceInfo {
  int number = 0;  // among all devices of this machine
  std::string name;
  std::string driver;         // "llvmpipe, Mesa 22.3.6 (LLVM 15.0.6)"
  std::string identity;       // what results may depend on: vendor, device, driver and its version
  std::uint32_t version = 0;  // of Vulkan
  bool software = false;      // computes on the processor: only taken if it is named
  bool integrated = false;    // shares the host's memory
  // Limits.
  std::int64_t memory_bytes = 0;  // of the largest heap of the device's own
  std::int64_t max_allocation = 0;
  std::int64_t shared_bytes = 0;  // of a workgroup
  std::int64_t max_invocations = 0;
  std::int64_t max_groups = 0;  // in each direction, the smallest
  std::int64_t uniform_alignment = 256;
  int subgroup = 0;
  double timestamp_ns = 0;  // of a tick; 0: it has no timestamps
  // What kernels may use.
  bool float64 = false;
  bool int64 = false, addresses = false, timeline = false;
  bool storage8 = false, storage16 = false;
  bool keeps_subnormals = false, keeps_special = false, rounds_to_even = false;
  // Between the invocations of a subgroup of `subgroup` of them; its size does not change, or can
  // be asked for, for workgroups of so many subgroups.
  bool shuffles = false, sizes_subgroups = false;
  std::int64_t max_subgroups = 0;
  VkPhysicalDevice handle = nullptr;

  // What Pantala cannot do without and this device lacks; "" if there is nothing.
  std::string missing() const;
  std::string version_text() const;  // "1.3.230"
};

// The loader and one instance; made once a process.
class Instance {
 public:
  // Null where there is no Vulkan: `why` then says what is missing.
  static std::shared_ptr<const Instance> get(std::string* why = nullptr);
  ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  const std::vector<DeviceInfo>& devices() const { return devices_; }
  const InstanceFunctions& functions() const { return functions_; }

 private:
  Instance() = default;
  std::string open();  // what went wrong, or ""
  std::string list();
  void* library_ = nullptr;
  VkInstance instance_ = nullptr;
  InstanceFunctions functions_;
  std::vector<DeviceInfo> devices_;
};

// The devices of this machine; none where there is no Vulkan.
std::vector<DeviceInfo> devices();

// The device of a choice: "" is the first that is no software, "1" a number, anything else a part
// of a name or of its driver's. DeviceError that says what there is if none fits, if several do,
// and if it lacks something.
DeviceInfo choose(std::string_view choice);

// "auto" as the name of a device: "vulkan" where there is a GPU that can be used, otherwise "cpu",
// and one line in the log says why. Any other name stays what it is.
std::string resolved_device(std::string_view name);

}  // namespace pantala::vulkan
