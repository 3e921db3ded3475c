// What a plan says about the arguments of its kernels, and what a device offers to them: all that
// the code of a kernel depends on beside the kernel itself.
#pragma once

#include <vector>

#include "codegen/spirv/spirv.h"
#include "plan/plan.h"
#include "vulkan/instance.h"

namespace pantala::device::vulkan {

codegen::spirv::Target code_target(const pantala::vulkan::DeviceInfo& info);
// By unit.
std::vector<codegen::spirv::Facts> facts_of(const plan::Plan& plan);

}  // namespace pantala::device::vulkan
