// The model zoo: whole graphs with PyTorch's parameter names, made by one function each.
#pragma once

#include <cstdint>
#include <vector>

#include "pantala/graph.h"
#include "pantala/nn.h"

namespace pantala::zoo {

// What is learnt: which class an item is of, or numbers.
enum class Task : std::uint8_t { classification, regression };

// How classes are given: their numbers, i64 [items], or probabilities, f32 [items, classes].
enum class Labels : std::uint8_t { classes, probabilities };

// A model with its training loss. The graph's inputs are `input` ("x" unless the function says
// otherwise) and `labels` ("labels": i64, of regression f32), its outputs "logits" (of regression
// "prediction") and "loss". A copy has a graph of its own, and handles to it.
struct Model {
  Graph graph;
  Tensor input, labels, loss;
  Tensor logits, prediction;  // the one that the task has

  Model() = default;
  Model(const Model& other);
  Model& operator=(const Model& other);
  Model(Model&&) noexcept = default;
  Model& operator=(Model&&) noexcept = default;
};

// How numbers are brought to mean 0 and deviation 1, by column.
struct TargetScale {
  std::vector<double> mean, deviation;
};

// Linear layers fc1, fc2, ... with an activation between them. x [batch, inputs]. Classification:
// cross entropy, labels [batch]. Regression: labels and prediction are [batch, targets] in the same
// units; the layers learn (label - mean) / deviation, and the loss is the mean squared error of
// that.
struct MlpConfig {
  std::int64_t batch = 64;
  std::int64_t inputs = 784;
  IntList hidden = {128};
  std::int64_t classes = 10;
  nn::Activation activation = nn::Activation::relu;
  Task task = Task::classification;
  std::int64_t targets = 1;       // of regression: numbers per item
  TargetScale target_scale = {};  // of regression; empty: labels are learnt as they are
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

// The larger models have headers of their own.
#include "pantala/zoo/llama.h"
#include "pantala/zoo/resnet.h"
#include "pantala/zoo/whisper.h"
