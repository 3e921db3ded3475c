// The pipeline from a complete step graph (outputs and updates) to a plan with its code: lower,
// schedule, generate code, plan memory. What is asked of the user's graph before (differentiation,
// optimizer, guards, accumulation) is done on graphs, by the callers (compiler/pipeline.cpp).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "codegen/llvm/llvm.h"
#include "compiler/host_program.h"
#include "pantala/compile.h"
#include "pantala/graph.h"
#include "plan/plan.h"
#include "schedule/program.h"
#include "schedule/target.h"

namespace pantala::compiler {

struct Options {
  std::string device = "cpu";  // "cpu": with compiled code; "kir": kernels only
  schedule::Target target = {};
  codegen::HostTarget code = {};  // what "cpu" compiles for
  bool fuse = true;
  int threads = 1;  // that generate code, and that will share the launches
  trace::Recorder* trace = nullptr;
};
// For the processor that this process runs on. 0 threads: as many as the process may use.
// UnsupportedError for a device that there is no code for.
Options host_options(const std::string& device, int threads, bool fuse);
// The numbers of a schedule's target for a processor; the caches are those of this machine.
schedule::Target schedule_target(const codegen::HostTarget& host);

// A graph that is one step of a session.
struct StepGraph {
  std::string role = "step";  // step, accumulate, apply; the name of the plan
  Graph graph = {};
  // Parameters, and the outputs that are their gradients.
  std::vector<CompiledPlan::ParameterGradient> gradients = {};
  NonFiniteGuard guard = NonFiniteGuard::none;  // that is part of the graph
};

// A leaf of a step.
struct CompiledLeaf {
  LeafKind kind = LeafKind::input;
  std::string name;
  Type type;
  Initializer init = {};  // of a parameter or state; the value of a scalar as a constant
  bool on_host = false;   // a counter or a hyper-parameter: its value lives in the host program
  bool updated = false;   // the step changes it
  friend bool operator==(const CompiledLeaf&, const CompiledLeaf&) = default;
};

// One step, ready for a device.
struct Compiled {
  std::string role;
  plan::Plan plan;
  HostProgram host;
  std::vector<CompiledLeaf> leaves;  // all of the graph, also those that the plan does not touch
  std::vector<schedule::StatusMessage> messages;
  std::vector<CompiledPlan::ParameterGradient> gradients;
  Report report;
};

// Records the stages schedule, codegen and plan in the report.
Compiled compile(const StepGraph& step, const Options& options);

// The leaves of a graph; where they live and what happens to them is left open.
std::vector<CompiledLeaf> leaves_of(const Graph& graph);
// Of the parameters and states.
std::int64_t bytes_in_store(const std::vector<CompiledLeaf>& leaves);

}  // namespace pantala::compiler
