#include "compiler/step_graphs.h"

#include <algorithm>

#include "compiler/guard.h"
#include "compiler/kept_statistics.h"
#include "ir/graph_data.h"
#include "ir/leaves.h"
#include "pantala/ops.h"
#include "plan/step_names.h"

namespace pantala::compiler {

namespace {

// Half-precision gradients are summed in f32.
DType accumulator_dtype(DType dtype) { return dtype == f64 ? f64 : f32; }

Tensor accumulator(Graph& graph, std::string_view name, const Type& type) {
  return graph.state(name, type.shape, init::zeros(), accumulator_dtype(type.dtype));
}

// The states that `accumulate` and `apply` share.
struct Accumulators {
  Tensor loss, weight;            // [1]: scalars could be taken for counters of the host
  std::vector<Tensor> gradients;  // of the parameters that are not frozen, in order

  Accumulators(Graph& graph, const TrainingGraph& training)
      : loss(accumulator(graph, plan::kAccumulatedLoss, {training.sum.dtype(), {1}})),
        weight(accumulator(graph, plan::kAccumulatedWeight, {training.weight.dtype(), {1}})) {
    for (const TrainedParameter& p : training.parameters)
      if (!p.frozen())
        gradients.push_back(
            accumulator(graph, plan::accumulated_gradient(p.name), p.gradient.type()));
  }
};

// Of a graph that these are handles to or that is a copy of theirs.
std::vector<TrainedParameter> parameters_in(const Graph& graph,
                                            std::vector<TrainedParameter> parameters) {
  for (TrainedParameter& p : parameters) {
    p.value = graph.value(p.value.id());
    if (!p.frozen()) p.gradient = graph.value(p.gradient.id());
  }
  return parameters;
}

// The parameter again, in another graph.
Tensor same_parameter(Graph& graph, const TrainedParameter& p) {
  const ir::Node& node = p.value.graph()->node(p.value.id().node);
  return graph.parameter(p.name, p.value.shape(), ir::attributes<op::Parameter>(node).init,
                         p.value.dtype());
}

// Those whose gradients the step must have: not the ones that another step updates, whose guard
// looks at them.
std::vector<TrainedParameter> updated_of(std::vector<TrainedParameter> parameters,
                                         const TrainingStepOptions& options) {
  if (!options.updated) return parameters;
  std::erase_if(parameters, [&](const TrainedParameter& p) {
    return std::ranges::find(*options.updated, p.name) == options.updated->end();
  });
  return parameters;
}

// Optimizer, gradients that can be read, guard. Handles are to `graph`.
StepGraph finish(std::string_view role, Graph graph, const Tensor& loss,
                 const std::vector<TrainedParameter>& parameters, const CompileOptions& options) {
  StepGraph step;
  step.role = role;
  step.guard = effective_guard(options);
  append_optimizer(graph, parameters, options.optimizer, options.training);
  for (const TrainedParameter& p : parameters) {
    if (p.frozen() || (options.optimizer && !options.observe_gradients)) continue;
    if (options.optimizer) graph.output("grad." + p.name, p.gradient);
    step.gradients.push_back({p.name, "grad." + p.name});
  }
  step.graph =
      guard_updates(std::move(graph), step.guard, loss, updated_of(parameters, options.training));
  return step;
}

StepGraph plain_step(const TrainingGraph& training, const CompileOptions& options) {
  Graph graph = training.graph;
  const std::vector<TrainedParameter> parameters = parameters_in(graph, training.parameters);
  const Tensor loss = graph.value(training.loss.id());
  return finish(plan::kStep, std::move(graph), loss, parameters, options);
}

StepGraph accumulate_step(const TrainingGraph& training, const CompileOptions& options) {
  Graph graph = training.graph;
  const Tensor first = ne(graph.scalar(plan::kFirstMicroBatch, 1), 0.0);
  const Accumulators sums(graph, training);
  const auto add_to = [&](const Tensor& sum, const Tensor& term) {
    const Tensor value = cast(reshape(graph.value(term.id()), sum.shape().vec()), sum.dtype());
    graph.update(sum, where(first, value, sum + value));
  };
  add_to(sums.loss, training.sum);
  add_to(sums.weight, training.weight);
  const std::vector<TrainedParameter> parameters = parameters_in(graph, training.parameters);
  auto sum = sums.gradients.begin();
  for (const TrainedParameter& p : parameters)
    if (!p.frozen()) add_to(*sum++, p.gradient);
  const Tensor loss = graph.value(training.loss.id());
  StepGraph step;
  step.role = plan::kAccumulate;
  step.guard = options.guard_micro_batches ? effective_guard(options) : NonFiniteGuard::none;
  step.graph = guard_updates(std::move(graph), step.guard, loss, parameters);
  return step;
}

StepGraph apply_step(const TrainingGraph& training, const CompileOptions& options) {
  Graph graph;
  std::vector<TrainedParameter> parameters;
  for (const TrainedParameter& p : training.parameters)
    parameters.push_back({p.name, same_parameter(graph, p), {}});
  const Accumulators sums(graph, training);
  const Tensor weight = reshape(sums.weight, {});
  auto next = sums.gradients.begin();
  for (std::size_t k = 0; k < parameters.size(); ++k) {
    if (training.parameters[k].frozen()) continue;
    const Tensor& sum = *next++;
    const Tensor wanted = options.normalize ? sum / cast(weight, sum.dtype()) : sum;
    parameters[k].gradient = cast(wanted, parameters[k].value.dtype());
  }
  const Tensor total = reshape(sums.loss, {});
  const Tensor loss = total / cast(weight, total.dtype());
  graph.output(plan::kLossOutput, loss);
  return finish(plan::kApply, std::move(graph), loss, parameters, options);
}

}  // namespace

TrainingGraph differentiate_training(const LossGraph& given, const CompileOptions& options) {
  // A graph of its own: the parts of a mean are new nodes.
  const auto [graph, id] = keep_statistics(given, options.training);
  const Tensor loss = graph.value(id);
  if (!splits_update(options)) return {differentiate_loss(graph, loss, options.training), {}, {}};
  const LossParts parts = loss_parts(loss);
  TrainingGraph training{differentiate_loss(graph, loss, options.training, parts.weight), {}, {}};
  training.sum = training.at(parts.sum);
  training.weight = training.at(parts.weight);
  return training;
}

std::vector<StepGraph> training_steps(const TrainingGraph& training,
                                      const CompileOptions& options) {
  if (!splits_update(options)) return {plain_step(training, options)};
  return {accumulate_step(training, options), apply_step(training, options)};
}

}  // namespace pantala::compiler
