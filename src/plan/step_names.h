// Names that the compiler gives to steps and to what it adds to them, by which a session finds them
// again. What the steps do: compiler/step_graphs.h.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace pantala::plan {

// The roles of steps.
inline constexpr std::string_view kStep = "step", kAccumulate = "accumulate", kApply = "apply";

// The loss that is trained, which Session::loss() reads.
inline constexpr std::string_view kLossOutput = "loss";
// Whether the numbers of the step were finite; of a step with a guard.
inline constexpr std::string_view kFiniteOutput = "finite";

// The scalar that says whether a micro-batch is the first of its update, and what micro-batches are
// summed in.
inline constexpr std::string_view kFirstMicroBatch = "accum.first", kAccumulatedLoss = "accum.loss",
                                  kAccumulatedWeight = "accum.weight";
// The name of the state that sums the gradients of a parameter.
inline std::string accumulated_gradient(std::string_view parameter) {
  return fmt::format("accum.grad.{}", parameter);
}

}  // namespace pantala::plan
