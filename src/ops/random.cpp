// Random numbers. The one primitive gives 32 bits per element as a pure function of (seed, draw,
// stream, element); numbers and masks are made of them by ordinary ops. The stream number is an
// attribute: it tells apart ops that would otherwise be one node.
#include "ops/random.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <numbers>

#include "base/philox.h"
#include "base/text.h"
#include "ops/define.h"

namespace pantala::ops {
namespace {

struct Family {
  static constexpr std::string_view kFamily = "random";
};

// seed and draw: the inputs that stand at `first` and behind it
void check_counters(InferContext& c, int first, std::int64_t stream) {
  for (int i = first; i < first + 2; ++i) {
    c.require_dtype(i, i64);
    c.require_rank(i, 0);
  }
  // The generator's counter has 32 bits for the stream.
  if (stream < 0 || stream > std::int64_t{UINT32_MAX})
    c.fail(fmt::format("stream {} is out of range [0, 2^32)", stream));
}

void require_finite(InferContext& c, std::string_view name, double value) {
  if (!std::isfinite(value)) c.fail(fmt::format("{} must be finite, got {}", name, exact(value)));
}

void require_float_dtype(InferContext& c, DType dtype) {
  if (!is_float(dtype))
    c.fail(fmt::format("dtype must be a float type, got {}", dtype_name(dtype)));
}

struct RandomBits : op::RandomBits, Family {
  static constexpr OpInfo info{name, "(seed, draw) -> bits",
                               "32 random bits per element, as i32 (Philox4x32-10)."};
  static constexpr std::array<int, 2> kIndexInputs{0, 1};
  static void infer(InferContext& c, Attrs& a) {
    check_counters(c, 0, a.stream);
    c.result({i32, Shape(a.shape)});
  }
  static Literal eval(const EvalContext& c, const Attrs& a) {
    const auto seed = static_cast<std::uint64_t>(c.in(0).i()[0]),
               draw = static_cast<std::uint64_t>(c.in(1).i()[0]);
    Literal out(c.result_type());
    for (std::int64_t k = 0; k < out.numel(); ++k)
      out.i()[k] = wrap_to(
          i32, std::int64_t{pantala::random_bits(seed, draw, static_cast<std::uint32_t>(a.stream),
                                                 static_cast<std::uint64_t>(k))});
    return out;
  }
  static std::vector<Sample> samples() {
    const std::vector<SampleInput> counters{ints({}, 0, 100), ints({}, 0, 100)};
    return {sample(counters, Attrs{{2, 3, 5}, 0}), sample(counters, Attrs{{}, 7}),
            sample(counters, Attrs{{1}, std::int64_t{UINT32_MAX}}),
            sample(counters, Attrs{{0, 4}, 1})};
  }
};

struct BitsToUnit : op::BitsToUnit, Pointwise, Family {
  static constexpr OpInfo info{name, "(bits) -> y",
                               "The top 24 of 32 bits as a number in [0, 1): a multiple of 2^-24."};
  static void infer(InferContext& c, Attrs& a) {
    c.require_dtype(0, i32);
    if (a.dtype != f32 && a.dtype != f64)
      c.fail(fmt::format("dtype must be f32 or f64, got {}", dtype_name(a.dtype)));
    c.result({a.dtype, c.shape(0)});
  }
  static Number scalar(Number bits, const Attrs&) {
    return bits_to_unit(static_cast<std::uint32_t>(bits.i));
  }
  static std::vector<Sample> samples() {
    return {sample({ints({2, 3}, -1000000000, 1000000000, i32)}, Attrs{f32}),
            sample({ints({}, -10, 10, i32)}, Attrs{f64}),
            sample({ints({0}, 0, 1, i32)}, Attrs{f32})};
  }
};

// Numbers in [0, 1) of the given shape; f16 and bf16 are computed in f32, because rounding to them
// could give 1.
Tensor unit_numbers(const Tensor& seed, const Tensor& draw, const Shape& shape, std::int64_t stream,
                    DType dtype) {
  return make<BitsToUnit>({make<RandomBits>({seed, draw}, {shape.vec(), stream})},
                          {dtype == f64 ? f64 : f32});
}

struct RandomUniform : Family {
  struct Attrs {
    Ints shape;
    std::int64_t stream = 0;
    double low = 0, high = 1;
    DType dtype = f32;
    static void fields(auto&& f, auto& a) {
      f("shape", a.shape, "sizes", Field::required);
      f("stream", a.stream, "which of the independent streams", Field::required);
      f("low", a.low, "the smallest number");
      f("high", a.high, "the end of the range, itself excluded but for rounding");
      f("dtype", a.dtype, "element type");
    }
  };
  static constexpr OpInfo info{
      "random_uniform", "(seed, draw) -> y",
      "Numbers spread evenly over [low, high), in steps of (high - low) * 2^-24.", "RandomUniform"};
  static constexpr std::array<int, 2> kIndexInputs{0, 1};
  static void infer(InferContext& c, Attrs& a) {
    check_counters(c, 0, a.stream);
    require_finite(c, "low", a.low);
    require_finite(c, "high", a.high);
    require_finite(c, "high - low", a.high - a.low);
    if (a.low > a.high) c.fail(fmt::format("low {} is above high {}", exact(a.low), exact(a.high)));
    require_float_dtype(c, a.dtype);
    c.result({a.dtype, Shape(a.shape)});
  }
  static Tensor expand(const ExpandContext& c, const Attrs& a) {
    const Tensor unit = unit_numbers(c.in(0), c.in(1), Shape(a.shape), a.stream, a.dtype);
    return cast(unit * (a.high - a.low) + a.low, a.dtype);
  }
  static std::vector<Sample> samples() {
    const std::vector<SampleInput> counters{ints({}, 0, 100), ints({}, 0, 100)};
    return {sample(counters, Attrs{{2, 3, 5}, 0, -2, 3, f32}),
            sample(counters, Attrs{{}, 1, 0, 1, f64}),
            sample(counters, Attrs{{1, 4}, 2, 0.5, 0.5, f16}),
            sample(counters, Attrs{{0}, 3, 0, 1, bf16})};
  }
};

struct RandomNormal : Family {
  struct Attrs {
    Ints shape;
    std::int64_t stream = 0;
    double mean = 0, std = 1;
    DType dtype = f32;
    static void fields(auto&& f, auto& a) {
      f("shape", a.shape, "sizes", Field::required);
      f("stream", a.stream, "which of the independent streams", Field::required);
      f("mean", a.mean, "mean");
      f("std", a.std, "standard deviation, at least 0");
      f("dtype", a.dtype, "element type");
    }
  };
  static constexpr OpInfo info{
      "random_normal", "(seed, draw) -> y",
      "Normally distributed numbers (Box-Muller, up to 5.8 standard deviations).", "RandomNormal"};
  static constexpr std::array<int, 2> kIndexInputs{0, 1};
  static void infer(InferContext& c, Attrs& a) {
    check_counters(c, 0, a.stream);
    require_finite(c, "mean", a.mean);
    require_finite(c, "std", a.std);
    if (a.std < 0) c.fail(fmt::format("std must be at least 0, got {}", exact(a.std)));
    require_float_dtype(c, a.dtype);
    const Shape shape(a.shape);
    Shape{2, shape.numel()};  // the definition draws two numbers per element
    c.result({a.dtype, shape});
  }
  // Two numbers per element from one stream: [2, elements]. The logarithm is taken of 1 - u, which
  // is never 0.
  static Tensor expand(const ExpandContext& c, const Attrs& a) {
    const std::int64_t count = Shape(a.shape).numel();
    const Tensor pairs = unit_numbers(c.in(0), c.in(1), {2, count}, a.stream, a.dtype);
    const auto half = [&](std::int64_t k) {
      return reshape(slice_axis(pairs, 0, k, k + 1), a.shape);
    };
    const Tensor radius = sqrt(log(1.0 - half(0)) * -2.0), angle = half(1) * (2 * std::numbers::pi);
    return cast(radius * cos(angle) * a.std + a.mean, a.dtype);
  }
  static std::vector<Sample> samples() {
    const std::vector<SampleInput> counters{ints({}, 0, 100), ints({}, 0, 100)};
    return {sample(counters, Attrs{{2, 3, 5}, 0, -2, 3, f32}),
            sample(counters, Attrs{{}, 1, 0, 1, f64}),
            sample(counters, Attrs{{1, 4}, 2, 0.5, 0, f16}),
            sample(counters, Attrs{{0, 2}, 3, 0, 1, f32})};
  }
};

struct Dropout : Family {
  struct Attrs {
    double p = 0.5;
    std::int64_t stream = 0;
    static void fields(auto&& f, auto& a) {
      f("p", a.p, "probability of a zero, in [0, 1)");
      f("stream", a.stream, "which of the independent streams", Field::required);
    }
  };
  static constexpr OpInfo info{
      "dropout", "(x, seed, draw) -> y",
      "Each element is zeroed with probability p; the others are scaled by 1 / (1 - p).",
      "Dropout"};
  static constexpr std::array<int, 2> kIndexInputs{1, 2};
  static void infer(InferContext& c, Attrs& a) {
    c.require_float(0);
    check_counters(c, 1, a.stream);
    if (!(a.p >= 0 && a.p < 1)) c.fail(fmt::format("p must be in [0, 1), got {}", exact(a.p)));
    c.result(c.in(0));
  }
  // Unit numbers are multiples of 2^-24, so p may be rounded up to the next of them: the comparison
  // stays the same and is exact in f32.
  static Tensor expand(const ExpandContext& c, const Attrs& a) {
    const Tensor& x = c.in(0);
    const Tensor unit = unit_numbers(c.in(1), c.in(2), x.shape(), a.stream, f32);
    return where(ge(unit, std::ceil(a.p * 0x1p24) * 0x1p-24), x * (1 / (1 - a.p)), 0.0);
  }
  static std::vector<Sample> samples() {
    const auto with = [](Shape shape, const Attrs& a) {
      return sample({floats(std::move(shape)), ints({}, 0, 100), ints({}, 0, 100)}, a);
    };
    return {with({4, 6}, {0.5, 0}), with({3, 3}, {0.1, 5}), with({}, {0.25, 1}),
            with({1, 7}, {0, 2}),   with({0, 2}, {0.9, 3}), with({2, 3, 5}, {0.7, 4})};
  }
};

// The operands and the stream of the next random op in a graph.
struct Counters {
  Operand seed, draw;
  std::int64_t stream;
  Counters(Graph& graph, Where where)
      : seed(graph.rng_seed(), where),
        draw(graph.rng_draw(), where),
        stream(graph.data()->next_stream()) {}
};

}  // namespace

std::vector<const OpDef*> random_ops() {
  return family<RandomBits, BitsToUnit, RandomUniform, RandomNormal, Dropout>();
}

}  // namespace pantala::ops

namespace pantala {

using namespace ops;

Tensor random_bits(Graph& graph, const Shape& shape, Where where) {
  const Counters c(graph, where);
  return make<RandomBits>({c.seed, c.draw}, {shape.vec(), c.stream});
}
Tensor random_uniform(Graph& graph, const Shape& shape, double low, double high, DType dtype,
                      Where where) {
  const Counters c(graph, where);
  return make<RandomUniform>({c.seed, c.draw}, {shape.vec(), c.stream, low, high, dtype});
}
Tensor random_normal(Graph& graph, const Shape& shape, double mean, double std, DType dtype,
                     Where where) {
  const Counters c(graph, where);
  return make<RandomNormal>({c.seed, c.draw}, {shape.vec(), c.stream, mean, std, dtype});
}
Tensor dropout(Operand x, double p) {
  Graph graph(x.tensor().graph());  // the graph of x itself, not a copy
  const Counters c(graph, x.where());
  return make<Dropout>({x, c.seed, c.draw}, {p, c.stream});
}

}  // namespace pantala
