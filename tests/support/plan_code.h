// Machine code for plans that were made by hand.
#pragma once

#include <string>
#include <vector>

#include "codegen/llvm/llvm.h"
#include "plan/plan.h"

namespace pantala::plan {

// Compiles the kernels of a plan and keeps the objects in it, as the compiler does. Units that are
// the same code become one. Returns how long each unit of the plan took.
struct UnitTime {
  std::string entry;
  double milliseconds = 0;  // 0 if the process had the code already
};
std::vector<UnitTime> compile_units(Plan& plan, const codegen::HostTarget& target, int threads);

}  // namespace pantala::plan
