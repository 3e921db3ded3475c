// An explanation for people who read a terminal, and for programs.
#pragma once

#include <string>
#include <string_view>

#include "tools/explain/explanation.h"

namespace pantala::tools {

std::string explanation_text(const Explanation& explanation);
// Kernels of what was chosen, by name or number: what they compute and how they came about.
// TypeError with the nearest name if no step has it.
std::string kernel_text(const Explanation& explanation, std::string_view name);

std::string explanation_json(const Explanation& explanation);

}  // namespace pantala::tools
