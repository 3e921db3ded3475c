// The scheduler's face: a training step (or any graph) becomes a Program in three stages. Lowering
// leaves only ops that the device has kernels for; deciding settles groups, storage and layouts
// without building anything; building makes the kernels.
#pragma once

#include "pantala/graph.h"
#include "schedule/archetype.h"
#include "schedule/decision_memo.h"
#include "schedule/decisions.h"
#include "schedule/machine.h"
#include "schedule/program.h"

namespace pantala::schedule {

// The graph with every composite that has no kernel of its own replaced by its definition, and
// without what no output or update needs. Its outputs and updates are those of the given graph.
Graph lower(const Graph& graph, const ArchetypeTable& archetypes);

// The decisions share the graph, which must not be changed afterwards.
Decisions decide(const Graph& lowered, const Machine& machine, const ScheduleOptions& options = {});
// The same, with what was found out for other graphs by the same machine and options.
Decisions decide(const Graph& lowered, const Machine& machine, const ScheduleOptions& options,
                 DecisionMemo& memo);

Program build(Decisions decisions, const Machine& machine, const ScheduleOptions& options = {});

// Decides and builds.
Program schedule(const Graph& lowered, const Machine& machine, const ScheduleOptions& options = {});

}  // namespace pantala::schedule
