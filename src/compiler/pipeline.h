// The pipeline is run_pipeline(): from the user's graph to a plan with its code, a line per stage:
//   canonicalise -> differentiate -> optimizer -> saturate -> schedule -> codegen -> plan
// The first three work on graphs, of which several steps may come; the others on each step. Both
// halves can be had alone by those who look inside. The stage `device` belongs to the session that
// opens one.
#pragma once

#include <vector>

#include "base/sha256.h"
#include "compiler/options.h"
#include "compiler/step_graphs.h"
#include "pantala/compile.h"
#include "plan/compiled_step.h"
#include "schedule/contents.h"
#include "schedule/machine.h"
#include "schedule/schedule.h"

namespace pantala::compiler {

// What is to be compiled. It refers to the graph and the options that it is made from.
struct Compilation {
  const Graph& graph;
  Tensor loss;  // empty: the graph as it is
  const CompileOptions& options;
  bool trains() const { return loss.valid(); }

  // TypeError for options that only training has, or that it cannot have, and for an empty loss.
  static Compilation plain(const Graph& graph, const CompileOptions& options);
  static Compilation training(const Graph& graph, const Tensor& loss,
                              const CompileOptions& options);
};

// The user's graph with the observed values as outputs `observe.<name>`. TypeError for a handle
// that is not a value of the graph (or of a graph that it was copied from).
LossGraph loss_graph(const Compilation& given);

// `key` is that of the plan (compiler/plan_key.h), which keeps it.
CompileResult run_pipeline(const Compilation& given, const Digest& key);

// The stages canonicalise, differentiate, optimizer; of a plain graph the first.
std::vector<StepGraph> make_step_graphs(const Compilation& given, Report& report);

// The stage saturate: the lowered graph that the scheduler gets.
Graph choose_graph(const StepGraph& step, const Options& options, Report& report);

// The same with all that the search found out.
search::Outcome search_step(const StepGraph& step, const Options& options);

// The nodes of the kernels of a chosen graph, by Report::Launch::group.
std::vector<schedule::GroupNodes> kernel_nodes(const Graph& chosen, const Options& options);

// What the stage schedule works with; it refers to the options.
struct ScheduleSetting {
  schedule::Machine machine;
  schedule::ScheduleOptions how;
};
ScheduleSetting schedule_setting(const Options& options);

// The stages saturate, schedule, codegen, plan, which are noted in the step's report.
plan::CompiledStep compile_step(const StepGraph& step, const Options& options);
// The last three, of a graph that was chosen.
plan::CompiledStep compile_chosen(const StepGraph& step, const Graph& chosen,
                                  const Options& options);

}  // namespace pantala::compiler
