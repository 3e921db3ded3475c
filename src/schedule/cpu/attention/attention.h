// The attention archetype in the graph: attention, its gradients, and attention over a cache. Every
// value occurs once among the outputs of a group; results that nobody asked for are not kept.
#pragma once

#include "schedule/archetype.h"

namespace pantala::schedule::cpu {

const Archetype& attention_archetype();

}  // namespace pantala::schedule::cpu
