// The cost tables of GPUs that are shipped.
#pragma once

#include "schedule/cost_table.h"

namespace pantala::schedule::gpu {

// That of a GPU, or for a target that is made of software of such a one.
const CostTable& shipped_cost_table(const Target& target);

}  // namespace pantala::schedule::gpu
