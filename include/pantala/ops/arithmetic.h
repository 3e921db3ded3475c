// Pointwise arithmetic, mathematical functions, comparisons, logic, selection and casts. Inputs
// broadcast right-aligned, as in NumPy; a plain number takes the dtype of the tensor beside it.
#pragma once

#include <vector>

#include "pantala/tensor.h"

namespace pantala {

Tensor add(Operand a, Operand b);
Tensor sub(Operand a, Operand b);
Tensor mul(Operand a, Operand b);
Tensor div(Operand a, Operand b);
Tensor pow(Operand base, Operand exponent);
Tensor pow_scalar(Operand x, double exponent);
// The remainder with the sign of the dividend, as C's fmod; it has no derivative here.
Tensor mod(Operand a, Operand b);
Tensor maximum(Operand a, Operand b);  // NaN wins; ties share the gradient
Tensor minimum(Operand a, Operand b);
// The sum of several tensors of one type, in the order given.
Tensor add_n(const std::vector<Tensor>& xs, Where where = Where::current());

Tensor neg(Operand x);
Tensor abs(Operand x);
Tensor sign(Operand x);
Tensor square(Operand x);
Tensor sqrt(Operand x);
Tensor rsqrt(Operand x);
Tensor reciprocal(Operand x);
Tensor exp(Operand x);
Tensor exp2(Operand x);
Tensor expm1(Operand x);
Tensor log(Operand x);
Tensor log2(Operand x);
Tensor log1p(Operand x);
Tensor sin(Operand x);
Tensor cos(Operand x);
Tensor tanh(Operand x);
Tensor erf(Operand x);
Tensor floor(Operand x);
Tensor ceil(Operand x);
Tensor round(Operand x);  // half to even
Tensor clamp(Operand x, double low, double high);

Tensor lt(Operand a, Operand b);
Tensor le(Operand a, Operand b);
Tensor gt(Operand a, Operand b);
Tensor ge(Operand a, Operand b);
Tensor eq(Operand a, Operand b);
Tensor ne(Operand a, Operand b);
Tensor logical_and(Operand a, Operand b);
Tensor logical_or(Operand a, Operand b);
Tensor logical_not(Operand a);
Tensor is_finite(Operand x);
// a where the condition holds, else b. No gradient flows into the condition.
Tensor where(Operand condition, Operand a, Operand b);
Tensor cast(Operand x, DType dtype);
Tensor identity(Operand x);
// The same value; gradients do not pass.
Tensor stop_gradient(Operand x);

Tensor operator+(Operand a, Operand b);
Tensor operator-(Operand a, Operand b);
Tensor operator*(Operand a, Operand b);
Tensor operator/(Operand a, Operand b);
Tensor operator-(Operand x);

// Constants in the graph and dtype of another tensor.
Tensor full_like(const Tensor& x, double value);
Tensor zeros_like(const Tensor& x);
Tensor ones_like(const Tensor& x);
// A constant of any shape beside x, in x's dtype.
Tensor full_beside(const Tensor& x, const Shape& shape, double value);

}  // namespace pantala
