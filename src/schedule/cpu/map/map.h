// The map archetype: every element of the outputs on its own, several outputs of one shape in one
// kernel. All that is computed element by element and has no anchor to join is a map, and so are
// copies.
#pragma once

#include <vector>

#include "schedule/building.h"
#include "schedule/work.h"

namespace pantala::schedule::cpu {

const Archetype& map_archetype();

// A kernel that computes and stores the outputs, which have one shape.
KernelDraft build_map(Building& building, const std::vector<GroupOutput>& outputs);
// What it does; `kernel` as in MemoryUse.
Work work_of_map(const Context& context, const std::vector<GroupOutput>& outputs,
                 int kernel = kEveryKernel);

}  // namespace pantala::schedule::cpu
