// The names that an e-graph gives to its parts.
#pragma once

#include <cstdint>

#include "base/id.h"

namespace pantala::egraph {

// A class of nodes that are known to have the same value. Ids of classes that were united stay
// valid names of what they became part of (EGraph::find).
using ClassId = Id<struct ClassTag>;
// A node: an op with its payload, applied to classes. Never reused.
using NodeId = Id<struct NodeTag>;
// A kind of operation; what patterns look for.
using OpId = Id<struct OpTag>;
// An op with its payload (attributes, a constant's value) and number of children.
using SymbolId = Id<struct SymbolTag>;
using RuleId = Id<struct RuleTag>;

}  // namespace pantala::egraph
