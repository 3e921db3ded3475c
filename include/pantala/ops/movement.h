// Movement: the same elements under other shapes and orders. Axes may be negative and then count
// from the end.
#pragma once

#include <vector>

#include "pantala/tensor.h"

namespace pantala {

using IntList = std::vector<std::int64_t>;

Tensor reshape(Operand x, const IntList& shape);  // one size may be -1
Tensor permute(Operand x, const IntList& axes);
Tensor transpose(Operand x, std::int64_t axis_a = -2, std::int64_t axis_b = -1);
Tensor broadcast_to(Operand x, const Shape& shape);
Tensor unsqueeze(Operand x, std::int64_t axis);
Tensor squeeze(Operand x, std::int64_t axis);
Tensor flatten(Operand x, std::int64_t first = 0, std::int64_t last = -1);
Tensor tril(Operand x, std::int64_t diagonal = 0);
Tensor triu(Operand x, std::int64_t diagonal = 0);
// 0, 1, 2, ... along one axis, in the graph of x.
Tensor iota_beside(const Tensor& x, const Shape& shape, std::int64_t axis, DType dtype = i64);

}  // namespace pantala
