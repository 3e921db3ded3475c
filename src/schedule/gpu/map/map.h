// The map archetype on a GPU: a thread per element or per four of them, in the order in which the
// first output lies in memory, so that neighbouring threads touch neighbours.
#pragma once

#include "schedule/building.h"

namespace pantala::schedule::gpu {

const Archetype& map_archetype();

}  // namespace pantala::schedule::gpu
