// Ops on shapes that are drawn, for random graphs: samples of the op table have fixed shapes, these
// have any, with sizes 0, 1, odd ones and large ones. A layer asks a source for its operands, so
// that it does not know whether they are leaves or results of other layers.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "pantala/graph.h"

namespace pantala::tests {

class Random;

struct LayerSource {
  Random& random;
  // A float tensor with values in [low, high] (in graphs of small integers: any small integers).
  std::function<Tensor(const Shape&, double low, double high)> floats;
  // An i64 tensor with values in [0, limit).
  std::function<Tensor(const Shape&, std::int64_t limit)> indices;

  Tensor any(const Shape& shape) const { return floats(shape, -1, 1); }
};

struct Layer {
  std::string_view name;
  std::vector<Tensor> (*make)(const LayerSource&);
  // Of small integers it makes small integers (or halves of them), and so do its gradients.
  bool exact = false;
};
std::span<const Layer> random_layers();

}  // namespace pantala::tests
