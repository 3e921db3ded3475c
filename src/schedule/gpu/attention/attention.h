// The attention archetype on a GPU: a running softmax over blocks of keys, so that nothing of the
// size queries x keys is ever stored. A workgroup has up to 16 positions of its own (queries, for
// the gradients of keys and values keys) and walks over the positions of the other side in blocks
// of kBlock: it brings the scores of a block into shared memory, and adds up what they weigh.
#pragma once

#include "schedule/archetype.h"

namespace pantala::schedule::gpu {

const Archetype& attention_archetype();

}  // namespace pantala::schedule::gpu
