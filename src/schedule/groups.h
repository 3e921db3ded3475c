// Groups: which nodes of a lowered graph share a kernel, which values are stored, where, and in
// which order the groups run.
#pragma once

#include <vector>

#include "schedule/context.h"

namespace pantala::schedule {

// In an order in which they can be run. Every stored value has its buffer in the context.
std::vector<Group> make_groups(Context& context);

}  // namespace pantala::schedule
