// Rewriting graphs with composites replaced by their definitions: for whoever understands only some
// ops (the interpreter, the scheduler, a file format).
#pragma once

#include <functional>

#include "ir/rewriter.h"

namespace pantala::ops {

using KeepsOp = std::function<bool(const ir::OpDef&)>;

// The rule that expands every op for which `keeps` does not hold; its definition is expanded in
// turn. What is kept is written by `kept`, by default as it is. InternalError for an op that is
// neither kept nor defined.
ir::Rewriter::Rule expand_unless(KeepsOp keeps, ir::Rewriter::Rule kept = {});

// Builds the definition of a node's op in a graph of its own, over inputs of its own: in the graph
// of the node, one value given twice could not be told apart.
struct Definition {
  Definition(const ir::Node& node, std::span<const Tensor> given);
  Graph graph;
  std::vector<Tensor> inputs, results;
};

}  // namespace pantala::ops
