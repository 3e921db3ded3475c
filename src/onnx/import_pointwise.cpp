// Pointwise operators that are not in the op table as they are: those with attributes, with any
// number of inputs, on integers, or made of several ops.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "onnx/adapters.h"

namespace pantala::onnx {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// --- arithmetic

void refuse_zeros(const Node& node) {
  if (is_float(node.dtype(1)) || !node.is_constant(1)) return;
  const std::shared_ptr<const Literal> divisor = node.constant(1);
  const auto zero = std::find(divisor->i().begin(), divisor->i().end(), 0);
  if (zero != divisor->i().end())
    node.fail(
        fmt::format("element {} of its divisor {} is 0; integers are divided by other numbers only",
                    zero - divisor->i().begin(), node.type(1).str()));
}

// Integers are divided in f64, which is exact up to 2^53, and rounded towards 0.
void convert_div(Node& node) {
  refuse_zeros(node);
  const Tensor a = node.tensor(0), b = node.tensor(1);
  node.give(is_float(a.dtype()) ? a / b : cast(cast(a, f64) / cast(b, f64), a.dtype()));
}

void convert_pow(Node& node) {
  const DType dtype = node.dtype(0);
  if (!is_float(dtype)) {
    node.give(cast(pow(cast(node.tensor(0), f64), cast(node.tensor(1), f64)), dtype));
    return;
  }
  const Tensor base = node.tensor(0);
  if (node.is_constant(1) && node.shape(1).numel() == 1 && node.rank(1) <= node.rank(0)) {
    const double exponent = node.number(1);
    node.give(exponent == 2 ? square(base) : pow_scalar(base, exponent));
    return;
  }
  node.give(pow(base, cast(node.tensor(1), dtype)));
}

// With fmod the remainder has the sign of the dividend, without that of the divisor.
void convert_mod(Node& node) {
  refuse_zeros(node);
  const Tensor a = node.tensor(0), b = node.tensor(1);
  const Tensor rest = mod(a, b);
  if (node.attribute("fmod", std::int64_t{0}) != 0) {
    node.give(rest);
    return;
  }
  const Tensor other_sign = logical_and(ne(rest, 0), lt(mul(sign(rest), sign(b)), 0));
  node.give(where(other_sign, rest + b, rest));
}

using Binary = Tensor (*)(Operand, Operand);
Tensor combined(Node& node, Binary combine) {
  Tensor result = node.tensor(0);
  for (int k = 1; k < node.inputs(); ++k) result = combine(result, node.tensor(k));
  return result;
}
template <Binary kCombine>
void convert_variadic(Node& node) {
  node.give(combined(node, kCombine));
}
void convert_mean_of_inputs(Node& node) {
  node.give(combined(node, add) / static_cast<double>(node.inputs()));
}

// Bounds are attributes up to version 10, and then inputs.
void convert_clip(Node& node) {
  const Tensor x = node.tensor(0);
  const bool inputs = node.opset() >= 11;
  const bool plain = is_float(x.dtype()) && (!node.has(1) || node.is_constant(1)) &&
                     (!node.has(2) || node.is_constant(2));
  if (!inputs || plain) {
    const double low = !inputs       ? node.attribute("min", -kInfinity)
                       : node.has(1) ? node.number(1)
                                     : -kInfinity;
    const double high = !inputs       ? node.attribute("max", kInfinity)
                        : node.has(2) ? node.number(2)
                                      : kInfinity;
    // A lower bound above the upper one gives the upper one.
    node.give(low <= high ? clamp(x, low, high) : minimum(maximum(x, low), high));
    return;
  }
  Tensor y = x;
  if (node.has(1)) y = maximum(y, node.tensor(1));
  if (node.has(2)) y = minimum(y, node.tensor(2));
  node.give(y);
}

void convert_cumulative_sum(Node& node) {
  Tensor x = node.tensor(0);
  const int axis = node.axis(node.integer(1), x.rank());
  const bool reverse = node.attribute("reverse", std::int64_t{0}) != 0;
  if (node.attribute("exclusive", std::int64_t{0}) != 0 && x.dim(axis) > 0) {
    const std::int64_t size = x.dim(axis);
    IntList before(static_cast<std::size_t>(x.rank()), 0), after = before;
    (reverse ? after : before)[static_cast<std::size_t>(axis)] = 1;
    x = pad(slice_axis(x, axis, reverse ? 1 : 0, reverse ? size : size - 1), before, after);
  }
  node.give(cumsum(x, axis, reverse));
}

// --- functions of one number
template <Tensor (*kFunction)(const Tensor&)>
void convert_function(Node& node) {
  node.give(kFunction(node.tensor(0)));
}
Tensor tangent(const Tensor& x) { return sin(x) / cos(x); }
// exp(|x|) / 2, which overflows later than exp(|x|).
Tensor half_exponential(const Tensor& x) {
  const Tensor h = exp(abs(x) * 0.5);
  return h * 0.5 * h;
}
// With expm1, which keeps the digits near 0; far from it the other exponential is negligible.
constexpr double kFar = 20;
Tensor hyperbolic_sine(const Tensor& x) {
  const Tensor e = expm1(minimum(abs(x), kFar));
  return sign(x) * where(gt(abs(x), kFar), half_exponential(x), 0.5 * (e + e / (e + 1.0)));
}
Tensor hyperbolic_cosine(const Tensor& x) {
  const Tensor e = exp(minimum(abs(x), kFar));
  return where(gt(abs(x), kFar), half_exponential(x), (e + 1.0 / e) * 0.5);
}
// Above kLarge the square may overflow, and the 1 beside it is negligible.
constexpr double kLarge = 1e9;
Tensor logarithm_of_double(const Tensor& x) { return log(x) + std::numbers::ln2; }
Tensor inverse_hyperbolic_sine(const Tensor& x) {
  const Tensor a = abs(x), near = minimum(a, kLarge), s = square(near);
  return sign(x) * where(gt(a, kLarge), logarithm_of_double(maximum(a, 1.0)),
                         log1p(near + s / (sqrt(s + 1.0) + 1.0)));
}
Tensor inverse_hyperbolic_cosine(const Tensor& x) {
  const Tensor near = minimum(x, kLarge);
  return where(gt(x, kLarge), logarithm_of_double(maximum(x, 1.0)),
               log(near + sqrt(near * near - 1.0)));
}
Tensor inverse_hyperbolic_tangent(const Tensor& x) { return (log1p(x) - log1p(-x)) * 0.5; }
// There is no such op: a guess that is 0.004 off, and two steps of Newton's method for tan(y) = x,
// each of which doubles the digits; above 1 through 1 / x.
Tensor inverse_tangent(const Tensor& x) {
  const Tensor a = abs(x), large = gt(a, 1.0);
  const Tensor t = where(large, 1.0 / maximum(a, 1.0), a);
  Tensor y = t * ((1.0 - t) * 0.273 + std::numbers::pi / 4);
  for (int step = 0; step < 2; ++step) {
    const Tensor c = cos(y);
    y = y - c * (sin(y) - t * c);
  }
  return sign(x) * where(large, std::numbers::pi / 2 - y, y);
}
Tensor inverse_sine(const Tensor& x) { return inverse_tangent(x / sqrt((1.0 - x) * (x + 1.0))); }
Tensor inverse_cosine(const Tensor& x) { return std::numbers::pi / 2 - inverse_sine(x); }
Tensor softsign(const Tensor& x) { return x / (abs(x) + 1.0); }

// --- activations
void convert_leaky_relu(Node& node) {
  node.give(leaky_relu(node.tensor(0), node.attribute("alpha", 0.01)));
}
void convert_elu(Node& node) { node.give(elu(node.tensor(0), node.attribute("alpha", 1.0))); }
void convert_selu(Node& node) {
  const double alpha = node.attribute("alpha", 1.67326319217681884765625);
  node.give(elu(node.tensor(0), alpha) * node.attribute("gamma", 1.05070102214813232421875));
}
void convert_celu(Node& node) {
  const double alpha = node.attribute("alpha", 1.0);
  node.give(elu(node.tensor(0) / alpha, 1) * alpha);
}
void convert_prelu(Node& node) {
  const Tensor x = node.tensor(0);
  Tensor slope = node.tensor(1);
  // Up to version 6 a list has a slope per channel.
  if (node.opset() < 7 && slope.rank() == 1 && x.rank() > 2 && slope.dim(0) > 1) {
    IntList sizes(static_cast<std::size_t>(x.rank() - 1), 1);
    sizes[0] = slope.dim(0);
    slope = reshape(slope, sizes);
  }
  node.give(where(gt(x, 0), x, x * broadcast_to(slope, x.shape())));
}
void convert_hard_sigmoid(Node& node) {
  const double alpha = node.attribute("alpha", 0.2), beta = node.attribute("beta", 0.5);
  const Tensor x = node.tensor(0);
  if (std::fabs(alpha - 1.0 / 6) < 1e-7 && beta == 0.5)
    node.give(hardsigmoid(x));
  else
    node.give(clamp(x * alpha + beta, 0, 1));
}
void convert_gelu(Node& node) {
  const std::string form = node.attribute("approximate", std::string("none"));
  if (form != "none" && form != "tanh") node.fail(fmt::format("approximate '{}'", form));
  node.give(form == "tanh" ? gelu_tanh(node.tensor(0)) : gelu(node.tensor(0)));
}
Tensor swish(Node& node) {
  const Tensor x = node.tensor(0);
  const double alpha = node.attribute("alpha", 1.0);
  return alpha == 1 ? silu(x) : x * sigmoid(x * alpha);
}
void convert_swish(Node& node) { node.give(swish(node)); }
void convert_swiglu(Node& node) { node.give(swish(node) * node.tensor(1)); }
void convert_thresholded_relu(Node& node) {
  const Tensor x = node.tensor(0);
  node.give(where(gt(x, node.attribute("alpha", 1.0)), x, 0));
}
void convert_shrink(Node& node) {
  const Tensor x = node.tensor(0);
  const double bias = node.attribute("bias", 0.0), lambda = node.attribute("lambd", 0.5);
  node.give(where(lt(x, -lambda), x + bias, where(gt(x, lambda), x - bias, 0)));
}
// Integers, too, from version 14 on.
void convert_relu(Node& node) {
  const Tensor x = node.tensor(0);
  node.give(is_float(x.dtype()) ? relu(x) : maximum(x, 0));
}
void convert_dropout(Node& node) {
  const Tensor x = node.tensor(0);
  const bool inputs = node.opset() >= 12;
  // The file may ask for it by itself; outside of training it is the identity.
  const ImportOptions& import = node.options();
  const bool told = inputs && node.has(2), asked = told && node.integer(2) != 0;
  const double ratio = !inputs ? node.attribute("ratio", 0.5) : node.has(1) ? node.number(1) : 0.5;
  const bool trains = import.training && (!import.as_exported || !told);
  const bool active = ((asked && !import.evaluation) || trains) && ratio > 0;
  if (active && node.wants(1)) node.unsupported("the mask of an active dropout is not available");
  if (active && node.evaluates()) node.unsupported("dropout of a constant");
  if (active && ratio == 1) node.fail("a ratio of 1 leaves nothing");
  node.give(active ? dropout(x, ratio) : x);
  if (node.wants(1)) node.give(1, node.graph().constant(1, x.shape(), boolean));
}

// --- tests and logic
Tensor comparable(const Tensor& x) { return x.dtype() == boolean ? cast(x, i32) : x; }
void convert_equal(Node& node) {
  node.give(eq(comparable(node.tensor(0)), comparable(node.tensor(1))));
}
void convert_xor(Node& node) {
  node.give(ne(comparable(node.tensor(0)), comparable(node.tensor(1))));
}
void convert_is_nan(Node& node) {
  const Tensor x = node.tensor(0);
  node.give(ne(x, x));
}
void convert_is_inf(Node& node) {
  const Tensor x = node.tensor(0);
  const bool positive = node.attribute("detect_positive", std::int64_t{1}) != 0;
  const bool negative = node.attribute("detect_negative", std::int64_t{1}) != 0;
  if (positive && negative)
    node.give(eq(abs(x), kInfinity));
  else if (positive || negative)
    node.give(eq(x, positive ? kInfinity : -kInfinity));
  else
    node.give(node.graph().constant(0, x.shape(), boolean));
}

// --- types
void cast_to(Node& node, int onnx_type) {
  const std::optional<DType> dtype = dtype_of(onnx_type);
  if (!dtype)
    node.unsupported(
        fmt::format("elements of type {} are not available", onnx_type_name(onnx_type)));
  if (node.dtype(0) == *dtype)
    node.give_value(0, node.value(0));
  else
    node.give(cast(node.tensor(0), *dtype));
}
void convert_cast(Node& node) {
  if (!node.has_attribute("to")) node.fail("the attribute 'to' is missing");
  cast_to(node, static_cast<int>(node.attribute("to", std::int64_t{0})));
}
void convert_cast_like(Node& node) { cast_to(node, onnx_type(node.dtype(1))); }
void convert_identity(Node& node) {
  if (node.is_of_detach() && is_float(node.dtype(0)) && !node.evaluates())
    node.give(stop_gradient(node.tensor(0)));
  else
    node.give_value(0, node.value(0));
}

constexpr Adapter kPointwiseAdapters[] = {
    {"Div", convert_div},
    {"Pow", convert_pow},
    {"Mod", convert_mod},
    {"Max", convert_variadic<maximum>},
    {"Min", convert_variadic<minimum>},
    {"Sum", convert_variadic<add>},
    {"Mean", convert_mean_of_inputs},
    {"Clip", convert_clip},
    {"CumSum", convert_cumulative_sum},
    {"Tan", convert_function<tangent>},
    {"Atan", convert_function<inverse_tangent>},
    {"Asin", convert_function<inverse_sine>},
    {"Acos", convert_function<inverse_cosine>},
    {"Sinh", convert_function<hyperbolic_sine>},
    {"Cosh", convert_function<hyperbolic_cosine>},
    {"Asinh", convert_function<inverse_hyperbolic_sine>},
    {"Acosh", convert_function<inverse_hyperbolic_cosine>},
    {"Atanh", convert_function<inverse_hyperbolic_tangent>},
    {"Softsign", convert_function<softsign>},
    {"LeakyRelu", convert_leaky_relu},
    {"Elu", convert_elu},
    {"Selu", convert_selu},
    {"Celu", convert_celu},
    {"PRelu", convert_prelu},
    {"HardSigmoid", convert_hard_sigmoid},
    {"Gelu", convert_gelu},
    {"Swish", convert_swish},
    {"SwiGLU", convert_swiglu},
    {"ThresholdedRelu", convert_thresholded_relu},
    {"Shrink", convert_shrink},
    {"Relu", convert_relu},
    {"Dropout", convert_dropout, false},
    {"Equal", convert_equal},
    {"Xor", convert_xor},
    {"IsNaN", convert_is_nan},
    {"IsInf", convert_is_inf},
    {"Cast", convert_cast},
    {"CastLike", convert_cast_like},
    {"Identity", convert_identity},
};

}  // namespace

std::span<const Adapter> pointwise_adapters() { return kPointwiseAdapters; }

}  // namespace pantala::onnx
