// From a loss to the graphs that a training session runs: `step`, or `accumulate` and `apply` where
// an update takes several micro-batches or is to be split from its gradients.
//
// `accumulate` runs once a micro-batch: it adds the gradients of the *sum* of the losses to states
// `accum.grad.<parameter>`, the sum itself to `accum.loss` and the weight by which it would be
// divided to `accum.weight`. `apply` runs once an update: it divides by the summed weight (unless
// the sum is wanted: CompileOptions::normalize), clips, applies the optimizer and gives the mean
// loss. So every item counts the same, however they were split.
//
// Whoever runs them sets the scalar `accum.first`: 1 before the first micro-batch of an update,
// which then overwrites what the states hold, 0 before the others. A micro-batch that the guard
// rejects changes nothing, so the next one is still the first; `apply` needs at least one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/training.h"
#include "pantala/compile.h"
#include "plan/step_names.h"

namespace pantala::compiler {

// A graph that is one step of a session.
struct StepGraph {
  std::string role = std::string(plan::kStep);  // the name of the plan
  Graph graph = {};
  // The same of what the user wrote, where `graph` is made of a canonical form of it.
  std::optional<Graph> written = {};
  bool stays_finite = false;  // `graph`, where `written` overflows on the way
  // Parameters, and the outputs that are their gradients.
  std::vector<CompiledPlan::ParameterGradient> gradients = {};
  NonFiniteGuard guard = NonFiniteGuard::none;  // that is part of the graph

  const Graph& as_written() const { return written ? *written : graph; }
};

// Whether there are `accumulate` and `apply` instead of `step`.
inline bool splits_update(const CompileOptions& options) {
  return options.split_update || options.accumulation_steps > 1 || !options.normalize;
}

// A differentiated loss. Where the update is split it was seeded with `weight`, where loss = sum /
// weight, so that the gradients are those of the sum; otherwise sum and weight are empty.
struct TrainingGraph : Differentiated {
  Tensor sum, weight;
};
TrainingGraph differentiate_training(const LossGraph& given, const CompileOptions& options);

// Appends optimizer, guard and observed gradients.
std::vector<StepGraph> training_steps(const TrainingGraph& training, const CompileOptions& options);

}  // namespace pantala::compiler
