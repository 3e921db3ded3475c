// What the processor is as a device.
#pragma once

#include "device/describe.h"

namespace pantala::device::cpu {

Description describe_cpu(bool probe);

}  // namespace pantala::device::cpu
