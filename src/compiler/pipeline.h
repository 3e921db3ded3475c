// The graph half of the pipeline, for those who look inside: the steps of a training session as
// they go to the scheduler.
#pragma once

#include <vector>

#include "compiler/sha256.h"
#include "compiler/step_graphs.h"
#include "pantala/compile.h"

namespace pantala::compiler {

// Options that only training has.
void check_training_options(const CompileOptions& options);
void check_plain_options(const CompileOptions& options);

// The user's graph with the observed values as outputs `observe.<name>`; the loss may be an empty
// handle. TypeError for a handle that is not a value of the graph (or of a graph that it was copied
// from).
LossGraph with_observed(const Graph& graph, const Tensor& loss, const CompileOptions& options);

// The stages canonicalise, differentiate, optimizer, saturate.
std::vector<StepGraph> training_graphs(const Graph& graph, const Tensor& loss,
                                       const CompileOptions& options, Report& report);
// The stages canonicalise, saturate.
std::vector<StepGraph> plain_graphs(const Graph& graph, const CompileOptions& options,
                                    Report& report);

// The stages schedule, codegen, plan.
CompileResult compile_steps(const std::vector<StepGraph>& steps, const Digest& key,
                            const CompileOptions& options, Report report);

}  // namespace pantala::compiler
