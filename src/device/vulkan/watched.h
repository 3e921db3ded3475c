// Functions of a device that are looked at on their way, for tests (faults.h): any of them can find
// no memory, a device that is lost stays lost, what is made is counted, and barriers are written
// down as they are recorded. Only devices that are opened while Faults::watches is set go through
// them.
#pragma once

#include <cstdint>
#include <vector>

#include "vulkan/functions.h"

namespace pantala::device::vulkan {

// The functions are the device's own, and of one driver for the whole process.
void watch(VkDevice device, pantala::vulkan::DeviceFunctions& functions);

// Devices, buffers, memory, pipelines, ... that were made by watched functions and are still there.
std::int64_t watched_objects();

// Whether there is a barrier for what kernels write between each dispatch of the command buffer and
// the one before it, as they were recorded last.
std::vector<bool> recorded_barriers(VkCommandBuffer commands);

}  // namespace pantala::device::vulkan
