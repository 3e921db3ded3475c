// The recurrent archetype in the graph: lstm, gru, rnn and their gradients, each one kernel that
// walks through time. Results that nobody asked for are not kept.
#pragma once

#include "schedule/archetype.h"

namespace pantala::schedule {

const Archetype& recurrent_archetype();

}  // namespace pantala::schedule
