// The axes of a contraction, side by side with lowering, which puts them into order.
#pragma once

#include <vector>

#include "ir/graph_data.h"

namespace pantala::schedule {

// The axes of one operand, each kind in the order of the loops [batch..., free of a..., free of
// b..., contracted...].
struct Axes {
  ir::Ints batch, free, contracted;
};
Axes axes_of_side(int rank, const ir::Ints& batch, const ir::Ints& contracted);

// Appends a contract node with operands that are read as [batch, m, k], with one stride for each of
// the three: an operand whose axes are mixed is put into that order first.
std::vector<Tensor> append_contraction(ir::GraphData& target, const ir::Node& node,
                                       std::vector<Tensor> inputs);

}  // namespace pantala::schedule
