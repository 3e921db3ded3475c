// The guard against numbers that are not finite, as a transformation of a step graph: every value
// that the device would write into the store is selected by whether the numbers are finite, and the
// graph says so in an output "finite". Counters that the host advances stay as they are: whoever
// runs the step advances them only if the output holds.
#pragma once

#include <vector>

#include "pantala/compile.h"
#include "pantala/graph.h"

namespace pantala::compiler {

// Handles are to `graph`. TypeError if the graph has an output "finite" already.
Graph guard_updates(Graph graph, NonFiniteGuard guard, const Tensor& loss,
                    const std::vector<Tensor>& gradients);

}  // namespace pantala::compiler
