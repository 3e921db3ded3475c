// Reverse-mode differentiation of graphs.
#pragma once

#include <vector>

#include "pantala/graph.h"

namespace pantala {

struct DifferentiateOptions {
  // The gradient of the loss with respect to itself: 1 unless given (a scalar of the loss's dtype,
  // a value of the same graph).
  Tensor seed;
  // Gradients stop at stop_gradient, which is then erased. Keep the marks in order to differentiate
  // the result again.
  bool keep_stop_gradients = false;
};

struct Gradients {
  Graph graph;                    // the old graph's nodes, then those of the gradients
  std::vector<Tensor> gradients;  // one per requested value, same order, shape and dtype
  // The handle in `graph` of a value of the old graph.
  Tensor at(const Tensor& old) const;

  std::vector<std::vector<ValueId>> values;  // per old node, its results in `graph`
};

// Differentiates the scalar `loss` with respect to `wrt`: parameters, inputs or intermediate
// values. What the loss does not reach gets zeros. TypeError where the loss is no scalar, or an op
// without a derivative lies on a path from `wrt` to the loss. Outputs and updates of the graph
// stay.
Gradients differentiate(const Graph& graph, const Tensor& loss, const std::vector<Tensor>& wrt,
                        const DifferentiateOptions& options = {});

}  // namespace pantala
