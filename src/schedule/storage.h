// Storage: where stored values lie, and the order of groups. New values of parameters and state are
// written in place where every reader of the old value can run first; elsewhere they go to a
// temporary and are copied.
#pragma once

#include <vector>

#include "schedule/fusion.h"

namespace pantala::schedule {

// The groups in an order in which they can be run. Every stored value has its buffer in the context
// afterwards.
std::vector<Group> assign_storage(Context& context, const Pieces& pieces, const Members& members);

}  // namespace pantala::schedule
