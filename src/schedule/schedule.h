// The scheduler's face: a training step (or any graph) becomes a Program.
#pragma once

#include <vector>

#include "pantala/graph.h"
#include "schedule/program.h"
#include "schedule/target.h"

namespace pantala::schedule {

struct ScheduleOptions {
  bool fuse = true;  // false: a kernel per op, the same bits
  int workers = 1;   // that will share the launches; changes the split of work, never a result
};

// The graph with every composite that has no kernel of its own replaced by its definition, and
// without what no output or update needs. Its outputs and updates are those of the given graph.
Graph lower(const Graph& graph);

// Schedules a lowered graph.
Program schedule(const Graph& lowered, const Target& target, const ScheduleOptions& options = {});

}  // namespace pantala::schedule
