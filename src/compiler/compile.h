// The pipeline from a complete step graph (outputs and updates) to a plan with its code: lower,
// schedule, generate code, plan memory. What is asked of the user's graph before (differentiation,
// optimizer, guards, accumulation) is done on graphs, by the callers.
#pragma once

#include <memory>
#include <string>
#include <vector>

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
  bool fuse = true;
  int threads = 1;  // that generate code, and that will share the launches
};

// A leaf that the plan or its host program reads or writes.
struct CompiledLeaf {
  LeafKind kind = LeafKind::input;
  std::string name;
  Type type;
  bool on_host = false;  // a counter or a hyper-parameter: its value lives in the host program
  bool updated = false;  // the step changes it
};

// One step, ready for a device.
struct Compiled {
  plan::Plan plan;
  HostProgram host;
  std::vector<CompiledLeaf> leaves;
  std::vector<schedule::StatusMessage> messages;
  Report report;
};

// Records the stages schedule, codegen and plan in the report.
Compiled compile(const Graph& graph, const Options& options);

}  // namespace pantala::compiler
