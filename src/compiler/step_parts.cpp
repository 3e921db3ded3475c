#include "compiler/step_parts.h"

#include <algorithm>

#include "compiler/canonicalise.h"
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

// What the search makes of the steps.
std::vector<search::Outcome> chosen_graphs(const Compilation& given) {
  const Options options = host_options(given.options);
  Report report;
  std::vector<search::Outcome> chosen;
  for (const StepGraph& step : make_step_graphs(given, report))
    chosen.push_back(search_step(step, options));
  return chosen;
}

}  // namespace

std::vector<StepParts> training_step_parts(const Graph& graph, const Tensor& loss,
                                           const CompileOptions& options) {
  CompileOptions plain = options;
  plain.observe = {};
  plain.observe_gradients = false;
  plain.non_finite = NonFiniteGuard::none;
  const Compilation given = Compilation::training(graph, loss, plain);
  const std::vector<search::Outcome> chosen = chosen_graphs(given);
  LossGraph form = loss_graph(given);
  Report report;
  if (!chosen.at(0).is_of_written) form = canonicalise(form, true, host_options(plain), report);
  const TrainingGraph training = differentiate_training(form, plain);
  std::vector<StepGraph> steps = training_steps(training, plain);
  std::vector<StepParts> parts{with_gradients(std::move(steps[0].graph), training)};
  for (std::size_t k = 1; k < steps.size(); ++k) {
    const ValueId mean_loss = steps[k].graph.output(plan::kLossOutput).id();
    parts.push_back({.graph = std::move(steps[k].graph), .loss = mean_loss});
  }
  for (std::size_t k = 0; k < steps.size(); ++k) parts[k].chosen = chosen[k].graph;
  return parts;
}

}  // namespace pantala::compiler
