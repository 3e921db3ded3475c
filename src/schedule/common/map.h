// The map archetypes in the graph: every element of the outputs on its own, several outputs of one
// shape in one kernel. All that is computed element by element and has no anchor to join is a map,
// and so are copies.
#pragma once

#include <vector>

#include "schedule/archetype.h"
#include "schedule/common/elementwise.h"

namespace pantala::schedule {

// The row of a device whose maps are built so.
Archetype map_row(std::vector<KernelDraft> (*build)(Building& building, const Group& group));

// What a kernel computes that stores the outputs, which have one shape. An update_slice that
// replaces its own operand is its window alone.
ElementwiseBody map_body(const Context& context, const std::vector<GroupOutput>& outputs);
// What the kernel does; `kernel` as in MemoryUse.
Work work_of_map(const Context& context, const std::vector<GroupOutput>& outputs,
                 int kernel = kEveryKernel);

}  // namespace pantala::schedule
