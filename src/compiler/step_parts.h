// The steps of a training session taken apart, for whoever replays one and asks which part of it a
// value belongs to (train/diagnose.h).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "pantala/compile.h"

namespace pantala::compiler {

struct StepParts {
  // Without guard and observed values; of the canonical form of the user's graph if that runs.
  Graph graph;
  ValueId loss;
  // By parameter, where the step computes gradients: `step` and `accumulate`.
  std::vector<std::pair<std::string, ValueId>> gradients = {};
  // Nodes before `forward` are of the forward pass, those before `backward` of the gradients, the
  // others of the update.
  std::uint32_t forward = 0, backward = 0;
  Graph chosen;  // what the search makes of it, lowered
};

// `step`, or `accumulate` and `apply`. TypeError as compile_training_graph().
std::vector<StepParts> training_step_parts(const Graph& graph, const Tensor& loss,
                                           const CompileOptions& options);

}  // namespace pantala::compiler
