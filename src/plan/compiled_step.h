// CompiledStep: one step of a session, ready for a device: its plan, what the host computes for it,
// and its leaves. Plain data; the compiler makes it (compiler/pipeline.h), a session binds it to
// memory (runtime/bound_plan.h) and a file keeps it (plan/plan_file.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kir/status_message.h"
#include "pantala/compiled_plan.h"
#include "pantala/graph.h"
#include "plan/host_part.h"
#include "plan/plan.h"

namespace pantala::plan {

// A leaf of a step.
struct CompiledLeaf {
  LeafKind kind = LeafKind::input;
  std::string name;
  Type type;
  Initializer init = {};  // of a parameter or state; the value of a scalar as a constant
  bool on_host = false;   // a counter or a hyper-parameter: its value lives in the host part
  bool updated = false;   // the step changes it
  // Of an input: the outputs that it takes part in, and whether an update does.
  std::vector<std::string> needed_by = {};
  bool feeds_updates = false;
  bool is_needed() const { return !needed_by.empty() || feeds_updates; }
  friend bool operator==(const CompiledLeaf&, const CompiledLeaf&) = default;
};

struct CompiledStep {
  std::string role;  // plan/step_names.h
  Plan plan;
  HostPart host;
  std::vector<CompiledLeaf> leaves;  // all of the graph, also those that the plan does not touch
  std::vector<kir::StatusMessage> messages;
  std::vector<CompiledPlan::ParameterGradient> gradients;
  Report report;
};

// The leaves of a graph; where they live and what happens to them is left open.
std::vector<CompiledLeaf> leaves_of(const Graph& graph);
// Of the parameters and states.
std::int64_t bytes_in_store(const std::vector<CompiledLeaf>& leaves);

}  // namespace pantala::plan
