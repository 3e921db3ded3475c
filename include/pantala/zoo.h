// The model zoo: whole graphs with PyTorch's parameter names, made by one function each.
#pragma once

#include "pantala/graph.h"
#include "pantala/nn.h"

namespace pantala::zoo {

// A model with its training loss. The graph's inputs are `input` ("x" unless the function says
// otherwise) and `labels` ("labels", i64), its outputs "logits" and "loss". A copy has a graph of
// its own, and handles to it.
struct Model {
  Graph graph;
  Tensor input, labels, logits, loss;

  Model() = default;
  Model(const Model& other);
  Model& operator=(const Model& other);
  Model(Model&&) noexcept = default;
  Model& operator=(Model&&) noexcept = default;
};

// Linear layers fc1, fc2, ... with an activation between them; cross entropy. x [batch, inputs].
struct MlpConfig {
  std::int64_t batch = 64;
  std::int64_t inputs = 784;
  IntList hidden = {128};
  std::int64_t classes = 10;
  nn::Activation activation = nn::Activation::relu;
};
Model mlp(const MlpConfig& config = {}, Where where = Where::current());

// Two 3x3 convolutions (conv1 to 32, conv2 to 64 channels), each with ReLU and 2x2 max pooling,
// then fc1 to 128, ReLU, fc2; cross entropy. x [batch, channels, size, size].
struct LenetConfig {
  std::int64_t batch = 64;
  std::int64_t channels = 1;
  std::int64_t size = 28;
  std::int64_t classes = 10;
};
Model lenet(const LenetConfig& config = {}, Where where = Where::current());

}  // namespace pantala::zoo
