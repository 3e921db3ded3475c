// Whether a plan is another's step for a different batch size: the same steps over the same
// parameters, states, counters and hyper-parameters, updated the same way, with inputs and outputs
// of the same names. What the steps compute is not compared.
#pragma once

#include <string>
#include <vector>

#include "plan/compiled_plan.h"

namespace pantala::runtime {

// A sentence each, all of them; empty if `plan` fits the session whose main plan is `main`.
std::vector<std::string> step_differences(const CompiledPlan::Data& main,
                                          const CompiledPlan::Data& plan);

}  // namespace pantala::runtime
