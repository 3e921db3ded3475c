// The values of a group of reductions, and the loops that run over them all.
#pragma once

#include <optional>
#include <vector>

#include "schedule/context.h"

namespace pantala::schedule {

struct ReduceGroup {
  Shape full;                        // of what is reduced
  std::vector<std::int64_t> axes;    // reduced ones, ascending
  std::vector<ValueId> reductions;   // in an order in which they can be computed
  std::vector<GroupOutput> outputs;  // one element per row, or the elements that are reduced
};

// The group that a single reduction is; outputs are to be added.
ReduceGroup reduce_group(const Context& context, std::uint32_t node);

// Whether values of this shape have one element per row of the group: its axes reduced, or kept
// with size 1.
bool is_row_shape(const ReduceGroup& group, const Shape& shape);
// Whether values of this shape have an element for each that is reduced.
bool is_full_shape(const ReduceGroup& group, const Shape& shape);

// The loops are the axes of what is reduced, cut wherever an axis of an output with as many
// elements begins, or one of a value that the code reads by other axes: [batch, groups, channels /
// groups, positions] with a result [batch, channels, height, width] has five.
struct ReduceLoops {
  Domain domain;
  Indices reduced;            // of an element of what is reduced, by the loops
  std::vector<bool> is_kept;  // by loop: whether it counts rows
};
// Nothing where an axis of one cuts across one of another.
std::optional<ReduceLoops> loops_of(const Context& context, const ReduceGroup& group);

// Of the element that belongs to the row, or to the element that is reduced, in a value with this
// shape.
Indices row_indices(const ReduceGroup& group, const ReduceLoops& loops, const Shape& shape);
Indices full_indices(const ReduceLoops& loops, const Shape& shape);

}  // namespace pantala::schedule
