#include "compiler/step_parts.h"

#include <algorithm>

#include "compiler/pipeline.h"
#include "plan/step_names.h"

namespace pantala::compiler {

namespace {

StepParts with_gradients(Graph graph, const TrainingGraph& training) {
  StepParts parts{.graph = std::move(graph), .loss = training.loss.id()};
  for (const auto& results : training.values)
    for (const ValueId& id : results) parts.forward = std::max(parts.forward, id.node + 1);
  parts.backward = static_cast<std::uint32_t>(training.graph.size());
  for (const TrainedParameter& p : training.parameters)
    if (!p.frozen()) parts.gradients.emplace_back(p.name, p.gradient.id());
  return parts;
}

}  // namespace

std::vector<StepParts> training_step_parts(const Graph& graph, const Tensor& loss,
                                           const CompileOptions& options) {
  CompileOptions plain = options;
  plain.observe = {};
  plain.observe_gradients = false;
  plain.non_finite = NonFiniteGuard::none;
  const LossGraph given = loss_graph(Compilation::training(graph, loss, plain));
  const TrainingGraph training = differentiate_training(given, plain);
  std::vector<StepGraph> steps = training_steps(training, plain);
  std::vector<StepParts> parts{with_gradients(std::move(steps[0].graph), training)};
  for (std::size_t k = 1; k < steps.size(); ++k) {
    const ValueId mean_loss = steps[k].graph.output(plan::kLossOutput).id();
    parts.push_back({.graph = std::move(steps[k].graph), .loss = mean_loss});
  }
  return parts;
}

}  // namespace pantala::compiler
