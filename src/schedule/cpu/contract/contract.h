// The contract archetype in the graph: the axes of the op become batch, m, n and k, operands are
// read through movement ops in place, and work on the result is an epilogue.
#pragma once

#include "schedule/archetype.h"

namespace pantala::schedule::cpu {

const Archetype& contract_archetype();

}  // namespace pantala::schedule::cpu
