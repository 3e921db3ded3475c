// The guard against numbers that are not finite, as a transformation of a step graph: every value
// that the device would write into the store is selected by whether the numbers are finite, and the
// graph says so in an output "finite". Counters that the host advances stay as they are: whoever
// runs the step advances them only if the output holds.
//
// The guard `watched` selects by the loss alone; what is selected is watched (op::Watched), with
// the squares of the gradients.
#pragma once

#include <vector>

#include "compiler/training.h"
#include "pantala/compile.h"
#include "pantala/graph.h"

namespace pantala::compiler {

// The guard that a step with these options has: `watched` is stricter where updates wait for all
// gradients anyway.
NonFiniteGuard effective_guard(const CompileOptions& options);

// Handles are to `graph`; parameters are those that the step has gradients of. TypeError if the
// graph has an output "finite" already.
Graph guard_updates(Graph graph, NonFiniteGuard guard, const Tensor& loss,
                    const std::vector<TrainedParameter>& parameters);

}  // namespace pantala::compiler
