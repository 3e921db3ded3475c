// Cutting, padding and joining. Axes may be negative and then count from the end.
#pragma once

#include <vector>

#include "pantala/ops/movement.h"
#include "pantala/tensor.h"

namespace pantala {

// Per axis: every step-th element of [start, end). Shorter lists leave the other axes whole; ends
// may be beyond the size, negative ones count from the end.
Tensor slice(Operand x, const IntList& starts, const IntList& ends, const IntList& steps = {});
// One axis of it.
Tensor slice_axis(Operand x, std::int64_t axis, std::int64_t start, std::int64_t end,
                  std::int64_t step = 1);
Tensor flip(Operand x, const IntList& axes);
Tensor concat(const std::vector<Tensor>& xs, std::int64_t axis = 0, Where where = Where::current());
Tensor stack(const std::vector<Tensor>& xs, std::int64_t axis = 0, Where where = Where::current());
std::vector<Tensor> split(Operand x, const IntList& sizes, std::int64_t axis = 0);
// `interior` elements of `value` between neighbours, `before` and `after` around.
Tensor pad(Operand x, const IntList& before, const IntList& after, double value = 0,
           const IntList& interior = {});
Tensor tile(Operand x, const IntList& repeats);

}  // namespace pantala
