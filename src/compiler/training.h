// The halves of make_training_step(): the pipeline times them as two stages, and accumulation puts
// something else between them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "pantala/training_step.h"

namespace pantala::compiler {

// A graph with a loss that is one of its values.
struct LossGraph {
  Graph graph;
  ValueId loss;
};

struct TrainedParameter {
  std::string name;
  Tensor value;
  Tensor gradient;  // an empty handle: it is frozen
  bool frozen() const { return !gradient.valid(); }
};

// A graph whose loss has been differentiated. All handles are to `graph`.
struct Differentiated {
  Graph graph;
  Tensor loss;
  std::vector<TrainedParameter> parameters;
  // The handle in `graph` of a value of the graph that was differentiated.
  Tensor at(const Tensor& old) const { return graph.value(values[old.id().node][old.id().result]); }

  std::vector<std::vector<ValueId>> values;  // per old node, its results in `graph`
};

// The chosen parameters that no group freezes are differentiated; the graph gets the output "loss"
// unless it has one, and the counter of the random ops advances by 1 a step. `seed` is a value of
// the graph: the gradient of the loss with respect to itself, 1 if it is empty.
Differentiated differentiate_loss(const Graph& graph, const Tensor& loss,
                                  const TrainingStepOptions& options, const Tensor& seed = {});

// What append() is told of a step's options.
optim::AppendOptions append_options(const TrainingStepOptions& options);

// Appends the optimizer; without one the gradients become outputs `grad.<parameter>`.
optim::Appended append_optimizer(Graph& graph, const std::vector<TrainedParameter>& parameters,
                                 const std::optional<optim::Optimizer>& optimizer,
                                 const TrainingStepOptions& options);

}  // namespace pantala::compiler
