// The conv archetype in the graph: a convolution or one of its gradients, with work on the result
// as an epilogue.
#pragma once

#include "schedule/archetype.h"

namespace pantala::schedule::cpu {

const Archetype& conv_archetype();

}  // namespace pantala::schedule::cpu
