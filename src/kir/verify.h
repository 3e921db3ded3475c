// The verifier of kernels: every invariant of kir/kernel.h that can be read off the code.
#pragma once

#include "kir/kernel.h"

namespace pantala::kir {

// Throws InternalError naming the kernel, the broken rule and the instruction as printed. Checks
// arguments, types, each instruction's rules (kir/rules.h), that every value is defined once,
// before its uses and in a block that encloses them, that steps that are constants are positive,
// and that threads meet only where all of them come.
void verify(const Kernel& kernel);

}  // namespace pantala::kir
