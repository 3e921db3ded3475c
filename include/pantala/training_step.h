// The training step as one graph: a forward graph with a loss is differentiated and extended by an
// optimizer. One step of a session of the result computes the loss and moves parameters, optimizer
// states, running statistics and counters on.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "pantala/graph.h"
#include "pantala/optim.h"

namespace pantala {

// Which batch norms keep their running statistics in training: they normalise with these instead of
// the batch's and do not update them, as in evaluation.
enum class KeptStatistics : std::uint8_t {
  of_frozen,  // those whose weight and bias a group freezes
  all,
  none,  // as PyTorch has it where a frozen layer is not switched to eval()
};

struct TrainingStepOptions {
  std::vector<std::string> parameters = {};  // by name; empty: all float parameters
  std::vector<optim::ParameterGroup> groups = {};
  KeptStatistics kept_statistics = KeptStatistics::of_frozen;
  optim::ClipOptions clip = {};
  std::optional<double> ema_decay = {};
  bool gradient_norms = false;
  bool global_norm = false;
  // As optim::AppendOptions.
  std::optional<std::vector<std::string>> updated = {};
};

struct TrainingStep {
  Graph graph;
  Tensor loss;  // in `graph`
  // By parameter, before clipping; frozen parameters have none.
  std::map<std::string, Tensor> gradients;
  std::optional<optim::Optimizer> optimizer;
  optim::Appended added;  // what the optimizer added; empty without one
};

// Only parameters that no group freezes are differentiated. The graph gets an output "loss" unless
// it has named the loss so itself, and the counter of the random ops, where there is one, advances
// by 1 a step. Without an optimizer nothing is updated by it and the gradients are outputs
// `grad.<parameter>`. Outputs and updates of the given graph stay. TypeError where the loss is no
// scalar of the graph, another value is named "loss", a name is unknown, nothing is left to train,
// or an option needs an optimizer.
TrainingStep make_training_step(const Graph& graph, const Tensor& loss,
                                const std::optional<optim::Optimizer>& optimizer,
                                const TrainingStepOptions& options = {});

}  // namespace pantala
