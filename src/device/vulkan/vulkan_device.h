// The Vulkan device: GPUs. "vulkan" is the first one that is no software, "vulkan:1" one by its
// number, "vulkan:NAME" by a part of its name.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "device/describe.h"
#include "device/device.h"

namespace pantala::device::vulkan {

std::unique_ptr<Device> make_vulkan_device(std::string_view choice, const DeviceOptions& options);
// Also of a device that is not there: then it says why.
Description describe_vulkan(std::string_view choice, bool probe);
// "0", "1", ...
std::vector<std::string> choices();

}  // namespace pantala::device::vulkan
