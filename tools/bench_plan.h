// What the plan of a workload says of itself.
#pragma once

#include <string>

#include "tools/bench_measure.h"

namespace pantala::tools {

// Plans the workload as it would be run, without code and without a step, and prints the figures.
void plan_workload(const std::string& name, const BenchOptions& options);

}  // namespace pantala::tools
