// The workloads that speed is measured on: models with their data and weights, always the same
// numbers.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "pantala/graph.h"
#include "pantala/literal.h"
#include "pantala/optim.h"
#include "pantala/session.h"
#include "pantala/weights.h"
#include "tools/bench/transformer.h"

namespace pantala::tools {

enum class BenchMode {
  train,  // a whole training step
  infer,  // the model's outputs alone, in its form for evaluation
};

struct Workload {
  std::string name;
  Graph graph;
  Tensor loss;                                    // of training
  optim::Optimizer optimizer = optim::sgd(0.01);  // of training
  std::map<std::string, Literal> inputs;
  Weights weights = {};  // of a file
};

std::vector<std::string> workload_names();
// A name from the list, behind which other sizes may stand ("lenet64:batch=8",
// "tfm8:layers=2,sequence=128"), or an ONNX file, which is trained by the squares of its first
// output. TypeError with the nearest name, or with the sizes that there are.
void require_workload(std::string_view name);
Workload make_workload(std::string_view name, BenchMode mode);
// `tfm8` with other sizes.
Workload transformer_workload(const TransformerConfig& config, BenchMode mode);

// As a file has them; otherwise every parameter from the filler, by its name: norm weights around
// 1, other vectors small, the rest by the number of their inputs, so that activations keep their
// size from layer to layer.
void set_weights(const Workload& workload, Session& session);

}  // namespace pantala::tools
