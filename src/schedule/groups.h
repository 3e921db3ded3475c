// Groups: which nodes of a lowered graph share a kernel, which values are stored, where, and in
// which order the groups run.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/context.h"
#include "schedule/lowering.h"

namespace pantala::schedule {

struct Group {
  Archetype kind = Archetype::elemental;
  std::vector<std::uint32_t> anchors;  // nodes that are not element by element, in order
  std::vector<GroupOutput> outputs;  // what it stores; everything else is recomputed by its readers
  bool is_copy = false;              // of a value that stands already: it is loaded, not computed
};

// In an order in which they can be run. Every stored value has its buffer in the context.
std::vector<Group> make_groups(Context& context);

}  // namespace pantala::schedule
