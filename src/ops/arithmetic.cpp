// Pointwise primitives: the scalar functions that every target knows.
#include "ops/arithmetic.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "ops/define.h"
#include "ops/watched.h"

namespace pantala::ops {
namespace {

struct Family {
  static constexpr std::string_view kFamily = "arithmetic";
};

// --- arithmetic

struct Add : op::Add, PointwiseNumeric, Family {
  static constexpr OpInfo info{name, "(a, b) -> y", "a + b.", "Add"};
  static Number scalar(Number a, Number b) { return a + b; }
  static void grad(GradContext& g) {
    g.give(0, [&] { return g.dy(); });
    g.give(1, [&] { return g.dy(); });
  }
  static std::vector<Sample> samples() { return pointwise_samples({{}, {}}); }
};

struct Sub : op::Sub, PointwiseNumeric, Family {
  static constexpr OpInfo info{name, "(a, b) -> y", "a - b.", "Sub"};
  static Number scalar(Number a, Number b) { return a - b; }
  static void grad(GradContext& g) {
    g.give(0, [&] { return g.dy(); });
    g.give(1, [&] { return -g.dy(); });
  }
  static std::vector<Sample> samples() { return pointwise_samples({{}, {}}); }
};

struct Mul : op::Mul, PointwiseNumeric, Family {
  static constexpr OpInfo info{name, "(a, b) -> y", "a * b.", "Mul"};
  static Number scalar(Number a, Number b) { return a * b; }
  static void grad(GradContext& g) {
    g.give(0, [&] { return g.dy() * g.in(1); });
    g.give(1, [&] { return g.dy() * g.in(0); });
  }
  static std::vector<Sample> samples() { return pointwise_samples({{}, {}}); }
};

struct Div : op::Div, Pointwise, Family {
  static constexpr OpInfo info{name, "(a, b) -> y", "a / b.", "Div"};
  static Number scalar(Number a, Number b) { return a / b; }
  static void grad(GradContext& g) {
    g.give(0, [&] { return g.dy() / g.in(1); });
    g.give(1, [&] { return -g.dy() * g.out() / g.in(1); });
  }
  static std::vector<Sample> samples() { return pointwise_samples({{}, {0.5, 2}}); }
};

struct Pow : op::Pow, Pointwise, Family {
  static constexpr OpInfo info{name, "(base, exponent) -> y", "base ** exponent.", "Pow"};
  static Number scalar(Number a, Number b) { return std::pow(a.f, b.f); }
  static void grad(GradContext& g) {
    const Tensor &x = g.in(0), &p = g.in(1);
    // x**0 is constant in x, and 0**p (p >= 0) is constant in p: both would be 0 * inf.
    g.give(0, [&] { return where(eq(p, 0.0), 0.0, g.dy() * p * pow(x, p - 1.0)); });
    g.give(1, [&] {
      return g.dy() * where(logical_and(eq(x, 0.0), ge(p, 0.0)), 0.0, g.out() * log(x));
    });
  }
  static std::vector<Sample> samples() { return pointwise_samples({{0.5, 2}, {-2, 2}}); }
};

struct PowScalar : op::PowScalar, Pointwise, Family {
  static constexpr OpInfo info{name, "(x) -> y", "x ** exponent."};
  static Number scalar(Number x, const Attrs& a) { return std::pow(x.f, a.exponent); }
  static void grad(GradContext& g, const Attrs& a) {
    g.give(0, [&] {
      return a.exponent == 0 ? zeros_like(g.in())
                             : g.dy() * a.exponent * pow_scalar(g.in(), a.exponent - 1);
    });
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> all = pointwise_samples({{0.5, 2}}, {3.0});
    all.push_back(sample({floats({2, 5}, 0.5, 2)}, Attrs{-1.5}));
    all.push_back(sample({floats({3})}, Attrs{2}));
    all.push_back(sample({floats({3})}, Attrs{0}));
    return all;
  }
};

struct Mod : op::Mod, PointwiseNumeric, Family {
  static constexpr OpInfo info{
      name, "(a, b) -> y", "The remainder of a / b with the sign of a, as C's fmod and %.", "Mod"};
  static Number scalar(Number a, Number b) {
    if (!a.integral) return std::fmod(a.f, b.f);
    if (b.i == 0) throw ValueError("an integer is divided by zero");
    return Number::of(b.i == -1 ? 0 : a.i % b.i);
  }
  static std::vector<Sample> samples() { return pointwise_samples({{-5, 5}, {1, 2}}); }
};

// The gradient goes to the side that wins; equal sides share it. Beside a NaN no side loses, and
// both get all of it, as in PyTorch.
Tensor winner_share(const Tensor& dy, const Tensor& loses, const Tensor& tied) {
  return where(tied, dy * 0.5, where(loses, 0.0, dy));
}

struct Maximum : op::Maximum, PointwiseNumeric, Family {
  static constexpr OpInfo info{name, "(a, b) -> y",
                               "The larger of a and b; NaN if either is. Ties share the gradient.",
                               "Max"};
  static Number scalar(Number a, Number b) { return ir::maximum(a, b); }
  static void grad(GradContext& g) {
    g.give(0, [&] { return winner_share(g.dy(), lt(g.in(0), g.in(1)), eq(g.in(0), g.in(1))); });
    g.give(1, [&] { return winner_share(g.dy(), lt(g.in(1), g.in(0)), eq(g.in(0), g.in(1))); });
  }
  static std::vector<Sample> samples() { return pointwise_samples({{}, {}}); }
};

struct Minimum : op::Minimum, PointwiseNumeric, Family {
  static constexpr OpInfo info{name, "(a, b) -> y",
                               "The smaller of a and b; NaN if either is. Ties share the gradient.",
                               "Min"};
  static Number scalar(Number a, Number b) { return ir::minimum(a, b); }
  static void grad(GradContext& g) {
    g.give(0, [&] { return winner_share(g.dy(), gt(g.in(0), g.in(1)), eq(g.in(0), g.in(1))); });
    g.give(1, [&] { return winner_share(g.dy(), gt(g.in(1), g.in(0)), eq(g.in(0), g.in(1))); });
  }
  static std::vector<Sample> samples() { return pointwise_samples({{}, {}}); }
};

struct AddN : op::AddN, Family {
  static constexpr OpInfo info{name, "(xs...) -> y",
                               "The sum of tensors of one type, added in the order given.", "Sum"};
  static void infer(InferContext& c) { PointwiseNumeric::infer(c); }
  static Literal eval(const EvalContext& c) {
    Literal out = c.in(0);
    for (int i = 1; i < c.count(); ++i)
      for (std::int64_t k = 0; k < out.numel(); ++k) {
        if (out.is_float())
          out.f()[k] += c.in(i).f()[k];
        else
          out.i()[k] =
              wrap_to(out.dtype(), (Number::of(out.i()[k]) + Number::of(c.in(i).i()[k])).i);
      }
    return out;
  }
  static void grad(GradContext& g) {
    for (int i = 0; i < g.count(); ++i) g.give(i, [&] { return g.dy(); });
  }
  static std::vector<Sample> samples() {
    return {sample({floats({2, 3}), floats({2, 3}), floats({2, 3})}), sample({floats({1})}),
            sample({floats({}), floats({})})};
  }
};

// --- functions of one number

// NAME, op, documentation, ONNX name, gradient in terms of x, y and dy, range of the samples.
#define PANTALA_UNARY(STRUCT, NAME, DOC, ONNX, GRADIENT, LOW, HIGH)                   \
  struct STRUCT : op::STRUCT, Pointwise, Family {                                     \
    static constexpr OpInfo info{name, "(x) -> y", DOC, ONNX};                        \
    static Number scalar(Number x) { return ir::NAME(x); }                            \
    static void grad(GradContext& g) {                                                \
      [[maybe_unused]] const Tensor &x = g.in(), &y = g.out(), dy = g.dy();           \
      g.give(0, [&] { return GRADIENT; });                                            \
    }                                                                                 \
    static std::vector<Sample> samples() { return pointwise_samples({{LOW, HIGH}}); } \
  };

constexpr double kTwoOverSqrtPi = 2 * std::numbers::inv_sqrtpi;

PANTALA_UNARY(Exp, exp, "e ** x.", "Exp", dy* y, -1, 1)
PANTALA_UNARY(Exp2, exp2, "2 ** x.", "", dy* y* std::numbers::ln2, -1, 1)
PANTALA_UNARY(Expm1, expm1, "e ** x - 1, exact near 0.", "", dy*(y + 1.0), -1, 1)
PANTALA_UNARY(Log, log, "The natural logarithm.", "Log", dy / x, 0.5, 2)
PANTALA_UNARY(Log2, log2, "The logarithm to base 2.", "", dy / (x * std::numbers::ln2), 0.5, 2)
PANTALA_UNARY(Log1p, log1p, "log(1 + x), exact near 0.", "", dy / (x + 1.0), -0.5, 2)
PANTALA_UNARY(Sqrt, sqrt, "The square root.", "Sqrt", dy / (y * 2.0), 0.5, 2)
PANTALA_UNARY(Rsqrt, rsqrt, "1 / sqrt(x).", "", dy * -0.5 * y / x, 0.5, 2)
PANTALA_UNARY(Reciprocal, reciprocal, "1 / x.", "Reciprocal", -dy* y* y, 0.5, 2)
PANTALA_UNARY(Sin, sin, "The sine; x in radians.", "Sin", dy* cos(x), -3, 3)
PANTALA_UNARY(Cos, cos, "The cosine; x in radians.", "Cos", -dy* sin(x), -3, 3)
PANTALA_UNARY(Tanh, tanh, "The hyperbolic tangent.", "Tanh", dy * (1.0 - y * y), -2, 2)
PANTALA_UNARY(Erf, erf, "The error function.", "Erf", dy* kTwoOverSqrtPi* exp(-(x* x)), -2, 2)
PANTALA_UNARY(Floor, floor, "The largest integer not above x; its gradient is 0.", "Floor",
              zeros_like(x), 0.1, 0.9)
PANTALA_UNARY(Ceil, ceil, "The smallest integer not below x; its gradient is 0.", "Ceil",
              zeros_like(x), 0.1, 0.9)
PANTALA_UNARY(Round, round, "The nearest integer, halves to even; its gradient is 0.", "Round",
              zeros_like(x), 0.6, 1.4)
#undef PANTALA_UNARY

struct Neg : op::Neg, PointwiseNumeric, Family {
  static constexpr OpInfo info{name, "(x) -> y", "-x.", "Neg"};
  static Number scalar(Number x) { return -x; }
  static void grad(GradContext& g) {
    g.give(0, [&] { return -g.dy(); });
  }
  static std::vector<Sample> samples() { return pointwise_samples({{}}); }
};

struct Abs : op::Abs, PointwiseNumeric, Family {
  static constexpr OpInfo info{name, "(x) -> y", "The magnitude; the gradient at 0 is 0.", "Abs"};
  static Number scalar(Number x) { return ir::abs(x); }
  static void grad(GradContext& g) {
    g.give(0, [&] { return g.dy() * sign(g.in()); });
  }
  static std::vector<Sample> samples() { return pointwise_samples({{}}); }
};

struct Sign : op::Sign, PointwiseNumeric, Family {
  static constexpr OpInfo info{name, "(x) -> y", "-1, 0 or 1, and 0 for NaN; its gradient is 0.",
                               "Sign"};
  static Number scalar(Number x) {
    if (x.integral) return Number::of((x.i > 0) - (x.i < 0));
    return static_cast<double>((x.f > 0) - (x.f < 0));
  }
  static void grad(GradContext& g) {
    g.give(0, [&] { return zeros_like(g.in()); });
  }
  static std::vector<Sample> samples() { return pointwise_samples({{}}); }
};

struct Square : op::Square, Pointwise, Family {
  static constexpr OpInfo info{name, "(x) -> y", "x * x."};
  static constexpr auto body = [](auto x) { return x * x; };
  static void grad(GradContext& g) {
    g.give(0, [&] { return g.dy() * (g.in() * 2.0); });
  }
  static std::vector<Sample> samples() { return pointwise_samples({{}}); }
};

struct Clamp : op::Clamp, Pointwise, Family {
  static constexpr OpInfo info{
      name, "(x) -> y", "x, but not below `low` nor above `high`; the gradient at the bounds is 0.",
      "Clip"};
  static void infer(InferContext& c, Attrs& a) {
    Pointwise::infer(c);
    if (!(a.low <= a.high)) c.fail(fmt::format("low {} must not be above high {}", a.low, a.high));
  }
  static constexpr auto body = [](auto x, const Attrs& a) {
    return minimum(maximum(x, a.low), a.high);
  };
  // The bounds themselves do not belong to the range, as for relu, and as in PyTorch from 2.15 on.
  static void grad(GradContext& g, const Attrs& a) {
    g.give(0, [&] {
      Tensor dx = g.dy();
      if (a.low > -INFINITY) dx = where(gt(g.in(), a.low), dx, 0.0);
      if (a.high < INFINITY) dx = where(lt(g.in(), a.high), dx, 0.0);
      return dx;
    });
  }
  static std::vector<Sample> samples() { return pointwise_samples({{}}, {-0.3, 0.4}); }
};

// --- comparisons and logic

#define PANTALA_COMPARE(STRUCT, NAME, DOC, ONNX)                                 \
  struct STRUCT : op::STRUCT, PointwiseTest, Family {                            \
    static constexpr OpInfo info{name, "(a, b) -> y", DOC, ONNX};                \
    static Number scalar(Number a, Number b) { return ir::NAME(a, b); }          \
    static std::vector<Sample> samples() { return pointwise_samples({{}, {}}); } \
  };
PANTALA_COMPARE(Lt, lt, "a < b, as a bool.", "Less")
PANTALA_COMPARE(Le, le, "a <= b, as a bool.", "LessOrEqual")
PANTALA_COMPARE(Gt, gt, "a > b, as a bool.", "Greater")
PANTALA_COMPARE(Ge, ge, "a >= b, as a bool.", "GreaterOrEqual")
PANTALA_COMPARE(Eq, eq, "a == b, as a bool.", "Equal")
PANTALA_COMPARE(Ne, ne, "a != b, as a bool.", "")
#undef PANTALA_COMPARE

struct PointwiseLogic : Pointwise {
  static void infer(InferContext& c) {
    for (int i = 0; i < c.count(); ++i) {
      c.require_dtype(i, boolean);
      if (!(c.shape(i) == c.shape(0))) c.fail("shapes differ: " + c.describe_inputs());
    }
    c.result(c.in(0));
  }
};
SampleInput bools(Shape shape) { return ints(std::move(shape), 0, 2, boolean); }

struct LogicalAnd : op::LogicalAnd, PointwiseLogic, Family {
  static constexpr OpInfo info{name, "(a, b) -> y", "Both.", "And"};
  static Number scalar(Number a, Number b) { return Number::of(a.truthy() && b.truthy()); }
  static std::vector<Sample> samples() { return {sample({bools({2, 3}), bools({2, 3})})}; }
};
struct LogicalOr : op::LogicalOr, PointwiseLogic, Family {
  static constexpr OpInfo info{name, "(a, b) -> y", "One or both.", "Or"};
  static Number scalar(Number a, Number b) { return Number::of(a.truthy() || b.truthy()); }
  static std::vector<Sample> samples() { return {sample({bools({2, 3}), bools({2, 3})})}; }
};
struct LogicalNot : op::LogicalNot, PointwiseLogic, Family {
  static constexpr OpInfo info{name, "(a) -> y", "Not a.", "Not"};
  static Number scalar(Number a) { return Number::of(!a.truthy()); }
  static std::vector<Sample> samples() { return {sample({bools({2, 3})})}; }
};

struct IsFinite : op::IsFinite, Pointwise, Family {
  static constexpr OpInfo info{name, "(x) -> y", "Neither infinite nor NaN, as a bool."};
  static void infer(InferContext& c) {
    c.require_float(0);
    c.result({boolean, c.shape(0)});
  }
  static Number scalar(Number x) { return Number::of(std::isfinite(x.f)); }
  static std::vector<Sample> samples() { return pointwise_samples({{}}); }
};

struct Watched : op::Watched, Family {
  static constexpr OpInfo info{
      name, "(xs...) -> y",
      "The first of tensors of one type. A step that meets a number in one of them that is not "
      "finite tells it: see NonFiniteGuard::watched."};
  static void infer(InferContext& c) { Pointwise::infer(c); }
  static Literal eval(const EvalContext& c) { return c.in(0); }
  static void grad(GradContext& g) {
    g.give(0, [&] { return g.dy(); });
  }
  static std::vector<Sample> samples() {
    return {sample({floats({2, 3}), floats({2, 3})}), sample({floats({5})}), sample({floats({})})};
  }
};

struct Where : op::Where, Pointwise, Family {
  static constexpr OpInfo info{
      name, "(condition, a, b) -> y",
      "a where the condition holds, else b. The condition carries no gradient.", "Where"};
  static constexpr std::array<int, 1> kIndexInputs{0};
  static void infer(InferContext& c) {
    c.require_dtype(0, boolean);
    c.require_same_dtype(1, 2);
    for (int i = 1; i < 3; ++i)
      if (!(c.shape(i) == c.shape(0))) c.fail("shapes differ: " + c.describe_inputs());
    c.result(c.in(1));
  }
  static Number scalar(Number c, Number a, Number b) { return c.truthy() ? a : b; }
  static void grad(GradContext& g) {
    g.give(1, [&] { return where(g.in(0), g.dy(), 0.0); });
    g.give(2, [&] { return where(g.in(0), 0.0, g.dy()); });
  }
  static std::vector<Sample> samples() {
    return {sample({bools({2, 3}), floats({2, 3}), floats({2, 3})}),
            sample({bools({}), floats({}), floats({})}),
            sample({bools({1, 4}), floats({1, 4}), floats({1, 4})})};
  }
};

struct Cast : op::Cast, Pointwise, Family {
  static constexpr OpInfo info{
      name, "(x) -> y",
      "The same numbers in another dtype; floats become integers by truncation, bools by != 0.",
      "Cast"};
  static void infer(InferContext& c, Attrs& a) { c.result({a.dtype, c.shape(0)}); }
  static Literal eval(const EvalContext& c, const Attrs& a) {
    Literal out(Type{a.dtype, c.in(0).shape()});
    for (std::int64_t k = 0; k < out.numel(); ++k) {
      const double real = c.in(0).is_float() ? c.in(0).f()[k] : 0;
      if (out.is_float())
        out.f()[k] = c.in(0).at(k);
      else if (a.dtype == boolean)
        out.i()[k] = c.in(0).is_float() ? real != 0 : c.in(0).i()[k] != 0;
      else
        out.i()[k] = wrap_to(a.dtype, c.in(0).is_float() ? truncate(real) : c.in(0).i()[k]);
    }
    return out;
  }
  // Saturates, so that every float has an integer; NaN becomes 0.
  static std::int64_t truncate(double x) {
    if (std::isnan(x)) return 0;
    if (x >= 0x1p63) return INT64_MAX;
    if (x <= -0x1p63) return INT64_MIN;
    return static_cast<std::int64_t>(x);
  }
  static void grad(GradContext& g) {
    g.give(0, [&] { return cast(g.dy(), g.in().dtype()); });
  }
  static std::vector<Sample> samples() {
    return {sample({floats({2, 3})}, Attrs{f64}), sample({ints({3}, -5, 5, i32)}, Attrs{f32}),
            sample({floats({4}, -3, 3)}, Attrs{i64}), sample({ints({4}, -1, 2)}, Attrs{boolean}),
            sample({ints({4}, 200, 300)}, Attrs{u8})};
  }
};

struct Identity : Family {
  static constexpr OpInfo info{"identity", "(x) -> y", "x.", "Identity"};
  static constexpr bool kSugar = true;
  static void infer(InferContext& c) { c.result(c.in(0)); }
  static Tensor expand(const ExpandContext& c) { return c.in(0); }
  static std::vector<Sample> samples() { return {sample({floats({2, 3})})}; }
};

struct StopGradient : op::StopGradient, Family {
  static constexpr OpInfo info{name, "(x) -> y", "x; gradients do not pass."};
  static constexpr std::array<int, 1> kIndexInputs{0};
  static void infer(InferContext& c) { c.result(c.in(0)); }
  static Literal eval(const EvalContext& c) { return c.in(0); }
  static void grad(GradContext&) {}
  static std::vector<Sample> samples() { return {sample({floats({2, 3})})}; }
};

}  // namespace

std::vector<const OpDef*> arithmetic_ops() {
  return family<Add, Sub, Mul, Div, Pow, PowScalar, Mod, Maximum, Minimum, AddN, Exp, Exp2, Expm1,
                Log, Log2, Log1p, Sqrt, Rsqrt, Reciprocal, Sin, Cos, Tanh, Erf, Floor, Ceil, Round,
                Neg, Abs, Sign, Square, Clamp, Lt, Le, Gt, Ge, Eq, Ne, LogicalAnd, LogicalOr,
                LogicalNot, IsFinite, Watched, Where, Cast, Identity, StopGradient>();
}

}  // namespace pantala::ops

namespace pantala {

using namespace ops;

Tensor add(Operand a, Operand b) { return make<Add>({a, b}); }
Tensor sub(Operand a, Operand b) { return make<Sub>({a, b}); }
Tensor mul(Operand a, Operand b) { return make<Mul>({a, b}); }
Tensor div(Operand a, Operand b) { return make<Div>({a, b}); }
Tensor pow(Operand base, Operand exponent) { return make<Pow>({base, exponent}); }
Tensor pow_scalar(Operand x, double exponent) { return make<PowScalar>({x}, {exponent}); }
Tensor mod(Operand a, Operand b) { return make<Mod>({a, b}); }
Tensor maximum(Operand a, Operand b) { return make<Maximum>({a, b}); }
Tensor minimum(Operand a, Operand b) { return make<Minimum>({a, b}); }
Tensor add_n(const std::vector<Tensor>& xs, pantala::Where where) {
  if (xs.empty()) ir::throw_type_error("add_n", ir::provenance(where), "needs at least one tensor");
  std::vector<Operand> operands;
  for (const Tensor& x : xs) operands.emplace_back(x, where);
  return make<AddN>(operands);
}

Tensor neg(Operand x) { return make<Neg>({x}); }
Tensor abs(Operand x) { return make<Abs>({x}); }
Tensor sign(Operand x) { return make<Sign>({x}); }
Tensor square(Operand x) { return make<Square>({x}); }
Tensor sqrt(Operand x) { return make<Sqrt>({x}); }
Tensor rsqrt(Operand x) { return make<Rsqrt>({x}); }
Tensor reciprocal(Operand x) { return make<Reciprocal>({x}); }
Tensor exp(Operand x) { return make<Exp>({x}); }
Tensor exp2(Operand x) { return make<Exp2>({x}); }
Tensor expm1(Operand x) { return make<Expm1>({x}); }
Tensor log(Operand x) { return make<Log>({x}); }
Tensor log2(Operand x) { return make<Log2>({x}); }
Tensor log1p(Operand x) { return make<Log1p>({x}); }
Tensor sin(Operand x) { return make<Sin>({x}); }
Tensor cos(Operand x) { return make<Cos>({x}); }
Tensor tanh(Operand x) { return make<Tanh>({x}); }
Tensor erf(Operand x) { return make<Erf>({x}); }
Tensor floor(Operand x) { return make<Floor>({x}); }
Tensor ceil(Operand x) { return make<Ceil>({x}); }
Tensor round(Operand x) { return make<Round>({x}); }
Tensor clamp(Operand x, double low, double high) { return make<Clamp>({x}, {low, high}); }

Tensor lt(Operand a, Operand b) { return make<Lt>({a, b}); }
Tensor le(Operand a, Operand b) { return make<Le>({a, b}); }
Tensor gt(Operand a, Operand b) { return make<Gt>({a, b}); }
Tensor ge(Operand a, Operand b) { return make<Ge>({a, b}); }
Tensor eq(Operand a, Operand b) { return make<Eq>({a, b}); }
Tensor ne(Operand a, Operand b) { return make<Ne>({a, b}); }
Tensor logical_and(Operand a, Operand b) { return make<LogicalAnd>({a, b}); }
Tensor logical_or(Operand a, Operand b) { return make<LogicalOr>({a, b}); }
Tensor logical_not(Operand a) { return make<LogicalNot>({a}); }
Tensor is_finite(Operand x) { return make<IsFinite>({x}); }
Tensor where(Operand condition, Operand a, Operand b) {
  return make<ops::Where>({condition, a, b});
}
Tensor cast(Operand x, DType dtype) {
  return x.tensor().dtype() == dtype ? x.tensor() : make<Cast>({x}, {dtype});
}
Tensor identity(Operand x) { return make<Identity>({x}); }
Tensor stop_gradient(Operand x) { return make<StopGradient>({x}); }

Tensor operator+(Operand a, Operand b) { return add(a, b); }
Tensor operator-(Operand a, Operand b) { return sub(a, b); }
Tensor operator*(Operand a, Operand b) { return mul(a, b); }
Tensor operator/(Operand a, Operand b) { return div(a, b); }
Tensor operator-(Operand x) { return neg(x); }

Tensor full_beside(const Tensor& x, const Shape& shape, double value) {
  return x.graph()->append(ir::constant_op(), {}, {value, x.dtype(), shape.vec()}, {})[0];
}
Tensor full_like(const Tensor& x, double value) { return full_beside(x, x.shape(), value); }
Tensor zeros_like(const Tensor& x) { return full_like(x, 0); }
Tensor ones_like(const Tensor& x) { return full_like(x, 1); }

}  // namespace pantala
