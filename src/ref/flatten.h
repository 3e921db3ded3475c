// Flattening: every composite that the interpreter has no direct meaning for is replaced by its
// definition, until only primitives and pointwise ops are left.
#pragma once

#include <vector>

#include "pantala/graph.h"

namespace pantala::ref {

struct Flat {
  Graph graph;
  std::vector<ValueId> values;  // the wanted values in it
};
Flat flatten(const Graph& graph, const std::vector<ValueId>& wanted);

}  // namespace pantala::ref
