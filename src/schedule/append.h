// What rows of the archetype table share when they append their nodes to a lowered graph.
#pragma once

#include <vector>

#include "ir/graph_data.h"

namespace pantala::schedule {

Tensor converted(const Tensor& x, DType to);

// Kernels that sum compute in f32 or f64: halves are converted on the way in ...
void widen_halves(std::vector<Tensor>& inputs);
// ... and out: the results have the dtypes of the node's.
std::vector<Tensor> append_converted(ir::GraphData& target, const ir::Node& node,
                                     const std::vector<Tensor>& inputs,
                                     const ir::AttrValues& attrs);

// Both.
std::vector<Tensor> append_widened(ir::GraphData& target, const ir::Node& node,
                                   std::vector<Tensor> inputs);

}  // namespace pantala::schedule
