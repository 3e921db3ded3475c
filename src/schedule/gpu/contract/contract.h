// The contract archetype on a GPU: tiles through shared memory (gpu/tile.h). Operands are computed
// where they are fetched: whatever moves their elements and is cheap needs no kernel; work on the
// result joins as an epilogue. Where the tiles are too few to keep a device busy, the sum is cut
// into slices, which a second kernel adds up in order.
#pragma once

#include "schedule/archetype.h"

namespace pantala::schedule::gpu {

const Archetype& contract_archetype();

}  // namespace pantala::schedule::gpu
