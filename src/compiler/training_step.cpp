#include "pantala/training_step.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/kept_statistics.h"
#include "compiler/training.h"
#include "pantala/autodiff.h"
#include "pantala/error.h"
#include "pantala/ops.h"
#include "plan/step_names.h"

namespace pantala {

namespace {

struct NamedParameter {
  std::string name;
  Tensor value;
  bool frozen;
};

NamedParameter describe(const std::string& name, const Tensor& value,
                        const std::vector<optim::ParameterGroup>& groups) {
  const optim::ParameterGroup* group = optim::find_group(groups, name);
  return {name, value, group != nullptr && group->frozen};
}

std::vector<NamedParameter> choose_parameters(const Graph& graph,
                                              const TrainingStepOptions& options) {
  std::vector<NamedParameter> chosen;
  const std::vector<Leaf> all = graph.leaves(LeafKind::parameter);
  for (const std::string& name : options.parameters) {
    const Tensor value = graph.leaf(name);
    if (std::none_of(all.begin(), all.end(), [&](const Leaf& leaf) { return leaf.name == name; }))
      throw TypeError(fmt::format("training step: '{}' is not a parameter", name));
    if (std::any_of(chosen.begin(), chosen.end(),
                    [&](const NamedParameter& p) { return p.name == name; }))
      throw TypeError(fmt::format("training step: the parameter '{}' is named twice", name));
    chosen.push_back(describe(name, value, options.groups));
  }
  if (options.parameters.empty())
    for (const Leaf& leaf : all)
      if (is_float(leaf.value.dtype()))
        chosen.push_back(describe(leaf.name, leaf.value, options.groups));
  if (chosen.empty())
    throw TypeError("training step: there is nothing to train: the graph has no float parameter");
  if (std::all_of(chosen.begin(), chosen.end(), [](const NamedParameter& p) { return p.frozen; }))
    throw TypeError(fmt::format(
        "training step: there is nothing to train: {} parameters, all frozen", chosen.size()));
  return chosen;
}

// Its name belongs to the loss that is trained.
void name_loss(Graph& graph, const Tensor& loss) {
  for (const auto& [name, value] : graph.outputs()) {
    if (name != plan::kLossOutput) continue;
    if (value == loss) return;
    throw TypeError(fmt::format(
        "training step: the graph's output '{}' is another value than the loss to train; give that "
        "output another name",
        plan::kLossOutput));
  }
  graph.output(plan::kLossOutput, loss);
}

void advance_random_draw(Graph& graph) {
  const std::optional<Tensor> draw = graph.find("rng.draw");
  if (!draw) return;
  const auto updates = graph.updates();
  const bool advanced = std::any_of(updates.begin(), updates.end(),
                                    [&](const auto& update) { return update.first == *draw; });
  if (!advanced) graph.update(*draw, *draw + 1);
}

void check_without_optimizer(const TrainingStepOptions& options) {
  const auto refuse = [](bool given, std::string_view what) {
    if (given) throw TypeError(fmt::format("training step: {} needs an optimizer", what));
  };
  refuse(options.clip.norm || options.clip.value, "clip");
  refuse(options.ema_decay.has_value(), "ema_decay");
  refuse(options.gradient_norms || options.global_norm, "a gradient norm");
}

}  // namespace

namespace compiler {

Differentiated differentiate_loss(const Graph& graph, const Tensor& loss,
                                  const TrainingStepOptions& options, const Tensor& seed) {
  const std::vector<NamedParameter> parameters = choose_parameters(graph, options);
  std::vector<Tensor> wrt;
  for (const NamedParameter& p : parameters)
    if (!p.frozen) wrt.push_back(p.value);
  Gradients gradients = differentiate(graph, loss, wrt, {.seed = seed});
  Differentiated result;
  result.loss = gradients.at(loss);
  auto next = gradients.gradients.begin();
  for (const NamedParameter& p : parameters)
    result.parameters.push_back({p.name, gradients.at(p.value), p.frozen ? Tensor() : *next++});
  result.graph = std::move(gradients.graph);
  result.values = std::move(gradients.values);
  name_loss(result.graph, result.loss);
  advance_random_draw(result.graph);
  return result;
}

optim::AppendOptions append_options(const TrainingStepOptions& options) {
  return {.groups = options.groups,
          .clip = options.clip,
          .ema_decay = options.ema_decay,
          .gradient_norms = options.gradient_norms,
          .global_norm = options.global_norm,
          .updated = options.updated};
}

optim::Appended append_optimizer(Graph& graph, const std::vector<TrainedParameter>& parameters,
                                 const std::optional<optim::Optimizer>& optimizer,
                                 const TrainingStepOptions& options) {
  if (!optimizer) {
    check_without_optimizer(options);
    for (const TrainedParameter& p : parameters)
      if (!p.frozen()) graph.output("grad." + p.name, p.gradient);
    return {};
  }
  std::vector<Tensor> weights, gradients;
  for (const TrainedParameter& p : parameters) {
    weights.push_back(p.value);
    gradients.push_back(p.gradient);
  }
  return optim::append(graph, *optimizer, weights, gradients, append_options(options));
}

}  // namespace compiler

namespace {

compiler::Differentiated differentiate_step(const Graph& graph, const Tensor& loss,
                                            const TrainingStepOptions& options) {
  if (!graph.has(loss)) return compiler::differentiate_loss(graph, loss, options);  // says so
  const auto [kept, id] = compiler::keep_statistics({graph, loss.id()}, options);
  return compiler::differentiate_loss(kept, kept.value(id), options);
}

}  // namespace

TrainingStep make_training_step(const Graph& graph, const Tensor& loss,
                                const std::optional<optim::Optimizer>& optimizer,
                                const TrainingStepOptions& options) {
  compiler::Differentiated differentiated = differentiate_step(graph, loss, options);
  TrainingStep step;
  step.graph = std::move(differentiated.graph);
  step.loss = differentiated.loss;
  step.optimizer = optimizer;
  for (const compiler::TrainedParameter& p : differentiated.parameters)
    if (!p.frozen()) step.gradients.emplace(p.name, p.gradient);
  step.added =
      compiler::append_optimizer(step.graph, differentiated.parameters, optimizer, options);
  return step;
}

}  // namespace pantala
