// The reduce archetype on a GPU: sums and extremes over axes of a tensor with everything around
// them that is computed element by element, further passes over a row included (softmax, norms).
//
// Ways to run it:
//  - groups: a workgroup per row, whose threads take the elements in turns and meet after each
//  pass.
//  - threads: a thread per row, for short rows and for rows that are neighbours in memory.
//  - split: where there are few rows, blocks of kSumBlock elements are items of a first kernel, and
//    a second one adds them up in order.
//
// The order of a sum follows from the op, its shapes and the target alone.
#pragma once

#include "schedule/building.h"

namespace pantala::schedule::gpu {

const Archetype& reduce_archetype();

}  // namespace pantala::schedule::gpu
