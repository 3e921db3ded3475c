// The graph of a session's step as rules see it: differentiated, with its optimizer, lowered. No
// kernel is built.
#pragma once

#include "compiler/pipeline.h"
#include "schedule/schedule.h"

namespace pantala::tests {

// Without a loss, the graph as it is.
inline Graph lowered_step(const Graph& graph, const Tensor& loss, const CompileOptions& options) {
  Report report;
  const auto given = loss.valid() ? compiler::Compilation::training(graph, loss, options)
                                  : compiler::Compilation::plain(graph, options);
  const compiler::StepGraph step = compiler::make_step_graphs(given, report).at(0);
  return schedule::lower(
      step.graph,
      compiler::backend_of(options.device).archetypes(compiler::host_options(options).code_for()));
}

}  // namespace pantala::tests
