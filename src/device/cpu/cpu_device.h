// The CPU: compiled kernels, run by a pool of workers that walk the plan together.
#pragma once

#include <memory>

#include "device/device.h"

namespace pantala::device::cpu {

std::unique_ptr<Device> make_cpu_device(const DeviceOptions& options);

}  // namespace pantala::device::cpu
