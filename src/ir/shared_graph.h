// The very same graph, not a copy: for those who only read it, as long as nobody changes it.
#pragma once

#include "pantala/graph.h"

namespace pantala::ir {

Graph shared(const Graph& graph);

}  // namespace pantala::ir
