// The simplifier: the last step before a backend, and what makes kernels of one archetype equal so
// that they share code. It keeps every bit of every result (and a kernel that the interpreter
// rejects may come out as one that it accepts, never the other way round).
//
// What it does, until nothing changes: folds constants with the interpreter's own arithmetic
// (kir/fold.h), simplifies integer and bool expressions, shares equal expressions with those of
// enclosing and earlier code, inlines loops of one iteration and branches on constants, drops loops
// of none, carried values that never change, and whatever nothing depends on (kir/dead_code.h).
// Then reports of a block that say the same become one (kir/reports.h). Floats are folded, never
// rearranged.
#pragma once

#include "kir/kernel.h"

namespace pantala::kir {

// A verified kernel whose values are numbered in order of definition.
Kernel simplify(const Kernel& kernel);

}  // namespace pantala::kir
