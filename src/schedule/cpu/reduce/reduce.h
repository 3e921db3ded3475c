// The reduce archetype: sums and extremes over axes of a tensor, with everything around them that
// is computed element by element: operands, what is made of the results per row, and (where rows
// are reduced) further passes over the row, as softmax and the norms need them.
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

struct ReduceGroup {
  Shape full;                        // of what is reduced
  std::vector<std::int64_t> axes;    // reduced ones, ascending
  std::vector<ValueId> reductions;   // in an order in which they can be computed
  std::vector<GroupOutput> outputs;  // of the full shape, or one element per row
};

// The group that a single reduction is; outputs are to be added.
ReduceGroup reduce_group(const Context& context, std::uint32_t node);

// Whether values of this shape have one element per row of the group: its axes reduced, or kept
// with size 1.
bool is_row_shape(const ReduceGroup& group, const Shape& shape);

// Whether the group can be run row by row with lanes along the reduced axes, which several passes
// and outputs of the full shape need.
bool runs_by_rows(const Context& context, const ReduceGroup& group);

const Archetype& reduce_archetype();

}  // namespace pantala::schedule::cpu
