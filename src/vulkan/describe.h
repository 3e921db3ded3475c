// What a driver says about a device, as plain numbers.
#pragma once

#include "vulkan/instance.h"

namespace pantala::vulkan {

DeviceInfo describe(const InstanceFunctions& functions, VkPhysicalDevice handle);

}  // namespace pantala::vulkan
