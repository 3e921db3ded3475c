// The cost tables of processors that are shipped.
#pragma once

#include "schedule/cost_table.h"

namespace pantala::schedule::cpu {

// By the width of vectors in bytes: of a processor that has them.
const CostTable& shipped_cost_table(int vector_bytes);

}  // namespace pantala::schedule::cpu
