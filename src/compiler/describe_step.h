// What is said about a compiled step beside its plan: its leaves, what the host computes for it,
// and the report.
#pragma once

#include <vector>

#include "pantala/graph.h"
#include "plan/compiled_step.h"
#include "schedule/program.h"

namespace pantala::compiler {

// The leaves of a step's graph, with the place that the plan leaves them.
std::vector<plan::CompiledLeaf> describe_leaves(const Graph& graph, const plan::Plan& plan);

plan::HostPart host_part(const schedule::Program& program);

// Ops of a lowered graph: a kernel each, were nothing fused.
std::int64_t count_ops(const Graph& lowered);
// Kernels and what they cost.
void report_kernels(Report& report, const schedule::Program& program);

}  // namespace pantala::compiler
