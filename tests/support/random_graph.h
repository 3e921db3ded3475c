// Seeded random graphs that are valid by construction: ops and attributes come from the samples of
// the op table, pointwise ops also get free, broadcasting shapes, and all families free shapes from
// support/random_layers.h (sizes 0, 1, odd and large ones included). Suites that must hold for any
// graph run over these.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/op.h"
#include "pantala/interpreter.h"

namespace pantala::tests {

// A small generator whose numbers are the same on every machine.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();
  std::int64_t below(std::int64_t count) {
    return static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(count));
  }
  // Both included.
  std::int64_t between(std::int64_t low, std::int64_t high) { return low + below(high - low + 1); }
  bool chance(double probability) {
    return static_cast<double>(next() >> 11) * 0x1p-53 < probability;
  }
  template <class List>
  const auto& pick(const List& list) {
    return *(std::begin(list) + below(std::ssize(list)));
  }

 private:
  std::uint64_t state_;
};

struct RandomGraphOptions {
  int steps = 12;  // ops to draw; each may bring leaves and small adapters with it
  // The loss can be differentiated: no float result comes from an op without a derivative.
  bool differentiable = true;
  DType dtype = f32;  // of all floats: the same graph in f32 and in f64
  // Leaves are small integers, and ops that of small integers make small integers: what a device
  // computes of them in f32 is exact, in whatever order. Gradients of deep graphs may outgrow f32.
  bool exact = false;
};

struct RandomGraph {
  Graph graph;              // outputs y0, y1, ... and "loss"; some parameters have updates
  Tensor loss;              // a scalar, finite for the given bindings
  std::vector<Tensor> wrt;  // all float parameters
  // Values of all inputs and parameters, in the ranges that the ops ask for.
  ref::Bindings bindings;
};
RandomGraph random_graph(std::uint64_t seed, const RandomGraphOptions& options = {});

// The ops of the table that have samples, in the order of their names.
const std::vector<const ir::OpDef*>& sampled_ops();

}  // namespace pantala::tests
