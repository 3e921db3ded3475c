// The pictures of `pantala inspect`: one function each, as text or as JSON.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plan/compiled_step.h"

namespace pantala::tools {

// Launches in order: what each waits for, its items, and the buffers of its first argument set.
std::string schedule_text(const std::vector<plan::CompiledStep>& steps);
std::string schedule_json(const std::vector<plan::CompiledStep>& steps);

// Kernels with what they cost.
std::string kernels_text(const std::vector<plan::CompiledStep>& steps);
std::string kernels_json(const std::vector<plan::CompiledStep>& steps);

// Regions, temporaries with their places and lifetimes, totals.
std::string memory_text(const std::vector<plan::CompiledStep>& steps);
std::string memory_json(const std::vector<plan::CompiledStep>& steps);

enum class KernelForm { kir, llvm, assembly, spirv };
// One kernel by name. TypeError with the nearest name.
std::string kernel_code(const std::vector<plan::CompiledStep>& steps, std::string_view name,
                        KernelForm form);

// Texts by role: {"step": "..."}, or one after the other.
struct RoleText {
  std::string role, text;
};
std::string roles_text(const std::vector<RoleText>& texts);
std::string roles_json(const std::vector<RoleText>& texts);

}  // namespace pantala::tools
