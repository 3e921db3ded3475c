// Reductions over any axes (an empty list means all), arg-max and running sums.
#pragma once

#include "pantala/ops/movement.h"
#include "pantala/tensor.h"

namespace pantala {

Tensor sum(Operand x, const IntList& axes = {}, bool keepdims = false);
Tensor mean(Operand x, const IntList& axes = {}, bool keepdims = false);
Tensor amax(Operand x, const IntList& axes = {}, bool keepdims = false);  // ties share the gradient
Tensor amin(Operand x, const IntList& axes = {}, bool keepdims = false);
Tensor prod(Operand x, const IntList& axes = {}, bool keepdims = false);
Tensor logsumexp(Operand x, const IntList& axes = {}, bool keepdims = false);
struct VarOptions {
  bool unbiased = true, keepdims = false;
};
Tensor var(Operand x, const IntList& axes = {}, const VarOptions& options = {});
// Positions as i64; of equals the first.
Tensor argmax(Operand x, std::int64_t axis = -1, bool keepdims = false);
Tensor argmin(Operand x, std::int64_t axis = -1, bool keepdims = false);
Tensor cumsum(Operand x, std::int64_t axis = -1, bool reverse = false);

}  // namespace pantala
