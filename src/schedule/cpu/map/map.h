// The map archetype: every element of the outputs on its own, several outputs of one shape in one
// kernel. All that is computed element by element and has no anchor to join is a map, and so are
// copies.
#pragma once

#include <vector>

#include "schedule/building.h"

namespace pantala::schedule::cpu {

const Archetype& map_archetype();

// A kernel that computes and stores the outputs, which have one shape.
KernelDraft build_map(Building& building, const std::vector<GroupOutput>& outputs);

}  // namespace pantala::schedule::cpu
