// The reduce archetype: sums and extremes over axes of a tensor, with everything around them that
// is computed element by element: operands, what is made of the results per row, and (where rows
// are reduced) further passes over the row, as softmax and the norms need them. What such a pass
// makes has the elements of the reduced tensor in their order, in whatever shape: the result of a
// group norm is no view of its groups.
//
// The bits of a sum depend on the op, its shape and the target alone: the reduced elements in
// row-major order r = 0, 1, ... of the reduced axes are cut into blocks of kSumBlock; within a
// block partial[r mod lanes] += x from +0, then the partial sums are halved
// (p[l] += p[l + lanes/2], ...); the blocks are added in order. Extremes do not depend on the
// order.
//
// Ways to run it, all with the same bits:
//  - rows: lanes along the reduced axes, a row at a time; several passes.
//  - columns: lanes along a kept axis, partial sums in scratch.
//  - split: blocks are items of a first kernel, a second one adds them up. For few long rows.
#pragma once

#include <vector>

#include "schedule/building.h"

namespace pantala::schedule::cpu {

constexpr std::int64_t kSumBlock = 4096;

const Archetype& reduce_archetype();

}  // namespace pantala::schedule::cpu
