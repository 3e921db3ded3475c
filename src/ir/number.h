// Number: one element as the interpreter sees it, a double or a 64-bit integer that wraps. Bodies
// of pointwise composites are written once, generically, and instantiated on Number (their meaning)
// and on Tensor (their expansion); the functions here are therefore named like the ops.
#pragma once

#include <cmath>
#include <cstdint>

namespace pantala::ir {

struct Number {
  double f = 0;
  std::int64_t i = 0;
  bool integral = false;

  Number() = default;
  Number(double value) : f(value) {}
  static Number of(std::int64_t value) {
    Number n;
    n.i = value;
    n.integral = true;
    return n;
  }
  double real() const { return integral ? static_cast<double>(i) : f; }
  bool truthy() const { return integral ? i != 0 : f != 0; }
};

namespace detail {
// A plain number in a body takes the kind of the other side.
inline void unify(Number& a, Number& b) {
  if (a.integral == b.integral) return;
  Number& real = a.integral ? b : a;
  real = Number::of(static_cast<std::int64_t>(real.f));
}
inline Number wrap(std::uint64_t value) { return Number::of(static_cast<std::int64_t>(value)); }
}  // namespace detail

#define PANTALA_NUMBER_ARITHMETIC(OP)                                                        \
  inline Number operator OP(Number a, Number b) {                                            \
    detail::unify(a, b);                                                                     \
    if (!a.integral) return a.f OP b.f;                                                      \
    return detail::wrap(static_cast<std::uint64_t>(a.i) OP static_cast<std::uint64_t>(b.i)); \
  }
PANTALA_NUMBER_ARITHMETIC(+)
PANTALA_NUMBER_ARITHMETIC(-)
PANTALA_NUMBER_ARITHMETIC(*)
#undef PANTALA_NUMBER_ARITHMETIC
inline Number operator/(Number a, Number b) { return a.real() / b.real(); }
inline Number operator-(Number a) {
  return a.integral ? detail::wrap(0 - static_cast<std::uint64_t>(a.i)) : Number(-a.f);
}

#define PANTALA_NUMBER_COMPARE(NAME, OP)                     \
  inline Number NAME(Number a, Number b) {                   \
    detail::unify(a, b);                                     \
    return Number::of(a.integral ? a.i OP b.i : a.f OP b.f); \
  }
PANTALA_NUMBER_COMPARE(lt, <)
PANTALA_NUMBER_COMPARE(le, <=)
PANTALA_NUMBER_COMPARE(gt, >)
PANTALA_NUMBER_COMPARE(ge, >=)
PANTALA_NUMBER_COMPARE(eq, ==)
PANTALA_NUMBER_COMPARE(ne, !=)
#undef PANTALA_NUMBER_COMPARE

#define PANTALA_NUMBER_FUNCTION(NAME, EXPRESSION) \
  inline Number NAME(Number n) {                  \
    const double x = n.real();                    \
    return EXPRESSION;                            \
  }
PANTALA_NUMBER_FUNCTION(exp, std::exp(x))
PANTALA_NUMBER_FUNCTION(exp2, std::exp2(x))
PANTALA_NUMBER_FUNCTION(expm1, std::expm1(x))
PANTALA_NUMBER_FUNCTION(log, std::log(x))
PANTALA_NUMBER_FUNCTION(log2, std::log2(x))
PANTALA_NUMBER_FUNCTION(log1p, std::log1p(x))
PANTALA_NUMBER_FUNCTION(sqrt, std::sqrt(x))
PANTALA_NUMBER_FUNCTION(rsqrt, 1.0 / std::sqrt(x))
PANTALA_NUMBER_FUNCTION(reciprocal, 1.0 / x)
PANTALA_NUMBER_FUNCTION(sin, std::sin(x))
PANTALA_NUMBER_FUNCTION(cos, std::cos(x))
PANTALA_NUMBER_FUNCTION(tanh, std::tanh(x))
PANTALA_NUMBER_FUNCTION(erf, std::erf(x))
PANTALA_NUMBER_FUNCTION(floor, std::floor(x))
PANTALA_NUMBER_FUNCTION(ceil, std::ceil(x))
PANTALA_NUMBER_FUNCTION(round, std::nearbyint(x))  // half to even
PANTALA_NUMBER_FUNCTION(sigmoid,
                        x >= 0 ? 1.0 / (1.0 + std::exp(-x)) : std::exp(x) / (1.0 + std::exp(x)))
#undef PANTALA_NUMBER_FUNCTION

inline Number abs(Number a) {
  if (a.integral) return a.i < 0 ? -a : a;
  return std::fabs(a.f);
}
// NaN wins, as in PyTorch.
inline Number maximum(Number a, Number b) {
  detail::unify(a, b);
  if (a.integral) return Number::of(a.i > b.i ? a.i : b.i);
  return a.f != a.f || a.f > b.f ? a : b;
}
inline Number minimum(Number a, Number b) {
  detail::unify(a, b);
  if (a.integral) return Number::of(a.i < b.i ? a.i : b.i);
  return a.f != a.f || a.f < b.f ? a : b;
}
inline Number where(Number condition, Number a, Number b) {
  if (a.integral != b.integral) detail::unify(a, b);
  return condition.truthy() ? a : b;
}

}  // namespace pantala::ir
