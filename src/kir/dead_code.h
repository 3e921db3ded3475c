// Removes what no store, report or barrier depends on, and renumbers values in order of definition
// (a block's parameters, its body, then the results of the instruction that owns it).
#pragma once

#include "kir/kernel.h"

namespace pantala::kir {

// Loads count as removable: one that nothing reads has no effect. So do carried values of loops and
// results of ifs, one by one.
Kernel remove_dead_code(const Kernel& kernel);

}  // namespace pantala::kir
