// Initialisers: moments, bounds and orthogonality against PyTorch's formulas, what the numbers
// depend on, rounding, and errors.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "ir/init_values.h"
#include "pantala/error.h"
#include "pantala/graph.h"
#include "pantala/interpreter.h"
#include "pantala/text.h"
#include "support/errors.h"

namespace pantala {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

struct Moments {
  double mean, deviation, smallest, largest;
};

Moments moments(const Literal& values) {
  Moments m{0, 0, kInf, -kInf};
  for (const double v : values.f()) {
    m.mean += v;
    m.smallest = std::min(m.smallest, v);
    m.largest = std::max(m.largest, v);
  }
  m.mean /= static_cast<double>(values.numel());
  for (const double v : values.f()) m.deviation += (v - m.mean) * (v - m.mean);
  m.deviation = std::sqrt(m.deviation / static_cast<double>(values.numel()));
  return m;
}

Literal draw(const Initializer& init, const Shape& shape, std::string_view name = "w",
             std::uint64_t seed = 1, DType dtype = f32) {
  return init::make(init, {dtype, shape}, name, seed);
}

// Half a percent of the scale: five standard errors of 10^6 draws.
constexpr double kSampleError = 0.005;
const Shape kMany{1000, 1000};

void expect_message(const Initializer& init, const Type& type, const std::string& message) {
  EXPECT_EQ(tests::message_of<TypeError>([&] { init::make(init, type, "w", 0); }), message)
      << to_text(init) << " of " << type.str();
}

// --- moments and bounds

TEST(Init, zeros_ones_and_constant_fill_every_dtype) {
  for (const DType dtype : {f32, f64, f16, bf16, i32, i64, u8, boolean}) {
    const Type type{dtype, {2, 3}};
    for (std::int64_t k = 0; k < 6; ++k) {
      EXPECT_EQ(init::make(init::zeros(), type, "w", 0).at(k), 0) << type.str();
      EXPECT_EQ(init::make(init::ones(), type, "w", 0).at(k), 1) << type.str();
      EXPECT_EQ(init::make(init::constant(1), type, "w", 0).at(k), 1) << type.str();
    }
  }
  EXPECT_EQ(draw(init::constant(-7), {}, "w", 0, i32).at(0), -7);
}

TEST(Init, uniform_has_its_bounds_and_moments) {
  const Moments m = moments(draw(init::uniform(-1, 3), kMany));
  EXPECT_GE(m.smallest, -1);
  EXPECT_LT(m.largest, 3);
  EXPECT_NEAR(m.smallest, -1, 1e-4);
  EXPECT_NEAR(m.largest, 3, 1e-4);
  EXPECT_NEAR(m.mean, 1, 4 * kSampleError);
  EXPECT_NEAR(m.deviation, 4 / std::sqrt(12.0), 4 * kSampleError);
}

TEST(Init, normal_has_its_moments_and_tails) {
  const Literal values = draw(init::normal(2, 0.5), kMany);
  const Moments m = moments(values);
  EXPECT_NEAR(m.mean, 2, kSampleError);
  EXPECT_NEAR(m.deviation, 0.5, kSampleError);
  // Shares beyond 1, 2 and 3 standard deviations, and no skew.
  for (const double z : {1.0, 2.0, 3.0}) {
    double above = 0, below = 0;
    for (const double v : values.f()) {
      above += v > 2 + z * 0.5;
      below += v < 2 - z * 0.5;
    }
    const double share = 0.5 * std::erfc(z / std::numbers::sqrt2);
    EXPECT_NEAR(above / 1e6, share, 5 * std::sqrt(share / 1e6)) << z;
    EXPECT_NEAR(below / 1e6, share, 5 * std::sqrt(share / 1e6)) << z;
  }
}

TEST(Init, truncated_normal_keeps_its_bounds_and_moments) {
  const Moments m = moments(draw(init::truncated_normal(), kMany));
  EXPECT_GE(m.smallest, -2);
  EXPECT_LE(m.largest, 2);
  EXPECT_NEAR(m.mean, 0, kSampleError);
  // Variance of N(0, 1) cut at -2 and 2: 1 - 4 phi(2) / (2 Phi(2) - 1).
  const double density = std::exp(-2.0) / std::sqrt(2 * std::numbers::pi);
  EXPECT_NEAR(m.deviation, std::sqrt(1 - 4 * density / std::erf(std::numbers::sqrt2)),
              kSampleError);
}

TEST(Init, truncated_normal_bounds_are_in_units_of_the_value) {
  const Moments m = moments(draw(init::truncated_normal(1, 0.02, -2, 2), {100, 100}));
  EXPECT_NEAR(m.mean, 1, 0.002);
  EXPECT_NEAR(m.deviation, 0.02, 0.002);
}

TEST(Init, truncated_normal_far_in_a_tail_follows_the_tail) {
  // E[z | 6 <= z <= 9] = (phi(6) - phi(9)) / (Q(6) - Q(9)).
  const auto density = [](double z) {
    return std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
  };
  const auto tail = [](double z) { return 0.5 * std::erfc(z / std::numbers::sqrt2); };
  const double mean = (density(6) - density(9)) / (tail(6) - tail(9));
  const Moments upper = moments(draw(init::truncated_normal(0, 1, 6, 9), {100, 100}));
  EXPECT_GE(upper.smallest, 6);
  EXPECT_LE(upper.largest, 9);
  EXPECT_NEAR(upper.mean, mean, 0.01);
  const Moments lower = moments(draw(init::truncated_normal(0, 1, -9, -6), {100, 100}));
  EXPECT_NEAR(lower.mean, -mean, 0.01);
}

TEST(Init, truncated_normal_in_a_narrow_window_is_spread_over_it) {
  const Moments m = moments(draw(init::truncated_normal(0, 1, -1e-3, 1e-3), {100, 100}));
  EXPECT_NEAR(m.mean, 0, 1e-4);
  EXPECT_NEAR(m.deviation, 2e-3 / std::sqrt(12.0), 5e-5);
}

TEST(Init, truncated_normal_without_spread_gives_the_nearest_possible_value) {
  EXPECT_EQ(draw(init::truncated_normal(0.5, 0, -2, 2), {}).at(0), 0.5);
  EXPECT_EQ(draw(init::truncated_normal(5, 0, -2, 2), {}).at(0), 2);
  EXPECT_EQ(draw(init::truncated_normal(0, 1, 100, 101), {}).at(0), 100);
}

// The formulas of torch.nn.init: fans of [out, in, ...] are in * receptive field and out *
// receptive field.
TEST(Init, fans_count_as_py_torch) {
  const init::Fans linear = init::fans({128, 784}), conv = init::fans({64, 32, 3, 5}),
                   empty = init::fans({4, 0});
  EXPECT_EQ(linear.in, 784);
  EXPECT_EQ(linear.out, 128);
  EXPECT_EQ(conv.in, 480);
  EXPECT_EQ(conv.out, 960);
  EXPECT_EQ(empty.in, 0);
}

void expect_uniform(const Initializer& init, const Shape& shape, double bound) {
  const Moments m = moments(draw(init, shape));
  EXPECT_LE(m.largest, bound * (1 + 1e-6)) << to_text(init);
  EXPECT_GE(m.smallest, -bound * (1 + 1e-6)) << to_text(init);
  EXPECT_GT(m.largest, 0.999 * bound) << to_text(init);
  EXPECT_LT(m.smallest, -0.999 * bound) << to_text(init);
  EXPECT_NEAR(m.mean, 0, 0.02 * bound) << to_text(init);
  EXPECT_NEAR(m.deviation, bound / std::sqrt(3.0), 0.02 * bound) << to_text(init);
}

void expect_normal(const Initializer& init, const Shape& shape, double deviation) {
  const Moments m = moments(draw(init, shape));
  EXPECT_NEAR(m.mean, 0, 0.03 * deviation) << to_text(init);
  EXPECT_NEAR(m.deviation, deviation, 0.03 * deviation) << to_text(init);
  EXPECT_GT(m.largest, 3 * deviation) << to_text(init);
}

TEST(Init, xavier_uniform_bound) {
  expect_uniform(init::xavier_uniform(), {128, 256}, std::sqrt(6.0 / (128 + 256)));
  expect_uniform(init::xavier_uniform(5.0 / 3), {64, 32, 3, 3},
                 5.0 / 3 * std::sqrt(6.0 / (9 * (64 + 32))));
}

TEST(Init, xavier_normal_deviation) {
  expect_normal(init::xavier_normal(), {128, 256}, std::sqrt(2.0 / (128 + 256)));
  expect_normal(init::xavier_normal(2), {64, 32, 5}, 2 * std::sqrt(2.0 / (5 * (64 + 32))));
}

TEST(Init, kaiming_uniform_bound) {
  expect_uniform(init::kaiming_uniform(), {128, 256}, std::sqrt(6.0 / 256));
  // PyTorch's default of linear and convolution layers: slope sqrt(5) is a bound of 1 /
  // sqrt(fan_in).
  expect_uniform(init::kaiming_uniform(std::sqrt(5.0)), {128, 256}, 1 / std::sqrt(256.0));
  expect_uniform(init::kaiming_uniform(std::sqrt(5.0)), {64, 32, 3, 3}, 1 / std::sqrt(9 * 32.0));
}

TEST(Init, kaiming_normal_deviation) {
  expect_normal(init::kaiming_normal(), {128, 256}, std::sqrt(2.0 / 256));
  expect_normal(init::kaiming_normal(0.2), {64, 32, 3, 3}, std::sqrt(2.0 / 1.04 / (9 * 32)));
}

TEST(Init, empty_shapes_are_empty) {
  for (const Initializer& init : {init::xavier_uniform(), init::kaiming_normal(),
                                  init::orthogonal(), init::truncated_normal(), init::uniform()}) {
    EXPECT_EQ(draw(init, {0, 4}).numel(), 0) << to_text(init);
    EXPECT_EQ(draw(init, {4, 0, 3}).numel(), 0) << to_text(init);
  }
}

// --- orthogonal

// The shorter side of the [rows, rest] matrix is orthonormal up to the gain.
void expect_orthogonal(const Shape& shape, double gain) {
  const Literal w = draw(init::orthogonal(gain), shape, "w", 3, f64);
  const std::int64_t rows = shape[0], columns = w.numel() / rows;
  const bool wide = rows <= columns;
  const std::int64_t count = wide ? rows : columns, length = wide ? columns : rows;
  const auto at = [&](std::int64_t vector, std::int64_t k) {
    return wide ? w.f()[vector * columns + k] : w.f()[k * columns + vector];
  };
  for (std::int64_t a = 0; a < count; ++a)
    for (std::int64_t b = 0; b <= a; ++b) {
      double dot = 0;
      for (std::int64_t k = 0; k < length; ++k) dot += at(a, k) * at(b, k);
      ASSERT_NEAR(dot, a == b ? gain * gain : 0, 1e-12) << shape.str() << " " << a << " " << b;
    }
}

TEST(Init, orthogonal_times_its_transpose_is_the_identity) {
  expect_orthogonal({5, 5}, 1);
  expect_orthogonal({3, 7}, 1);
  expect_orthogonal({7, 3}, 1);
  expect_orthogonal({64, 64}, std::sqrt(2.0));
  expect_orthogonal({8, 4, 3, 3}, 0.5);
  expect_orthogonal({1, 1}, 1);
}

TEST(Init, orthogonal_of_one_element_is_never_nan) {
  int positive = 0;
  for (int k = 0; k < 200; ++k) {
    const double value = draw(init::orthogonal(), {1, 1}, fmt::format("w{}", k)).at(0);
    EXPECT_EQ(std::fabs(value), 1);
    positive += value > 0;
  }
  EXPECT_GT(positive, 60);
  EXPECT_LT(positive, 140);
}

// --- what the numbers depend on

TEST(Init, equal_seed_and_name_give_equal_bits) {
  for (const Initializer& init : {init::uniform(), init::normal(), init::truncated_normal(),
                                  init::orthogonal(), init::kaiming_uniform()})
    EXPECT_EQ(draw(init, {8, 8}, "fc1.weight", 42), draw(init, {8, 8}, "fc1.weight", 42));
}

TEST(Init, other_seeds_and_other_names_give_other_numbers) {
  const Literal base = draw(init::uniform(), {1000}, "a", 1);
  for (const Literal& other :
       {draw(init::uniform(), {1000}, "b", 1), draw(init::uniform(), {1000}, "a", 2),
        draw(init::uniform(), {1000}, "b", 2)}) {
    double covariance = 0;
    for (std::int64_t k = 0; k < 1000; ++k)
      covariance += (base.f()[k] - 0.5) * (other.f()[k] - 0.5) / 1000;
    EXPECT_NEAR(covariance * 12, 0, 0.15);
  }
}

TEST(Init, neighbouring_elements_are_independent) {
  const Literal values = draw(init::normal(), {100000});
  for (const std::int64_t lag : {1, 2, 3, 4, 8}) {
    double covariance = 0;
    for (std::int64_t k = 0; k + lag < values.numel(); ++k)
      covariance += values.f()[k] * values.f()[k + lag];
    EXPECT_NEAR(covariance / 1e5, 0, 0.02) << lag;
  }
}

TEST(Init, the_shape_does_not_change_the_stream) {
  const Literal flat = draw(init::normal(), {24}), cube = draw(init::normal(), {2, 3, 4});
  EXPECT_EQ(flat.reshaped({2, 3, 4}), cube);
}

TEST(Init, parts_are_those_of_the_whole) {
  const Type type{f32, {7, 300}};
  for (const Initializer& init :
       {init::normal(1, 2), init::uniform(-1, 3), init::kaiming_uniform(1), init::xavier_normal(),
        init::truncated_normal(0, 1, -1, 1), init::orthogonal(), init::constant(0.1)}) {
    const Literal whole = init::make(init, type, "w", 3);
    const init::Values values(init, type, "w", 3);
    for (const std::int64_t first : {0, 1, 2, 3, 255, 257, 2099}) {
      std::vector<double> part(static_cast<std::size_t>(std::min<std::int64_t>(700, 2100 - first)));
      values.fill(first, part);
      for (std::size_t k = 0; k < part.size(); ++k)
        ASSERT_EQ(part[k], whole.at(first + static_cast<std::int64_t>(k))) << first << "+" << k;
    }
  }
}

TEST(Init, the_order_of_creation_does_not_matter) {
  Graph forward, backward;
  for (const char* name : {"a", "b", "c"}) forward.parameter(name, {4, 4}, init::normal());
  for (const char* name : {"c", "b", "a"}) backward.parameter(name, {4, 4}, init::normal());
  const ref::Session one(forward, 9), two(backward, 9), other(forward, 10);
  for (const char* name : {"a", "b", "c"}) {
    EXPECT_EQ(one.value(name), two.value(name));
    EXPECT_NE(one.value(name), other.value(name));
  }
  EXPECT_NE(one.value("a"), one.value("b"));
}

// --- rounding and data

TEST(Init, values_are_rounded_to_the_dtype) {
  for (const DType dtype : {f32, f16, bf16}) {
    for (const Initializer& init :
         {init::constant(0.1), init::uniform(-3, 5), init::normal(), init::truncated_normal(),
          init::orthogonal(), init::xavier_normal(), init::kaiming_uniform(1)}) {
      const Literal values = draw(init, {16, 16}, "w", 5, dtype);
      for (const double v : values.f())
        ASSERT_EQ(v, round_to(dtype, v)) << to_text(init) << " " << dtype_name(dtype);
    }
  }
  EXPECT_EQ(draw(init::constant(0.1), {}).at(0), static_cast<double>(0.1f));
  EXPECT_EQ(draw(init::constant(0.1), {}, "w", 0, f64).at(0), 0.1);
}

TEST(Init, from_data_gives_the_data_rounded_to_its_dtype) {
  EXPECT_EQ(draw(init::from_data(Literal::floats({2}, {0.1, -2})), {2}).to_doubles(),
            (std::vector<double>{static_cast<double>(0.1f), -2}));
  EXPECT_EQ(
      draw(init::from_data(Literal::floats({2}, {0.1, -2}, f64)), {2}, "w", 0, f64).to_doubles(),
      (std::vector<double>{0.1, -2}));
  EXPECT_EQ(draw(init::from_data(Literal::ints({3}, {1, 2, 300})), {3}, "w", 0, i64).to_doubles(),
            (std::vector<double>{1, 2, 300}));
}

TEST(Init, initialisers_compare_by_value) {
  EXPECT_EQ(init::uniform(0, 1), init::uniform());
  EXPECT_FALSE(init::uniform(0, 1) == init::uniform(0, 2));
  EXPECT_FALSE(init::normal(0, 1) == init::uniform(0, 1));
  EXPECT_FALSE(init::constant(0.0) == init::constant(-0.0));
  EXPECT_EQ(init::from_data(Literal::floats({1}, {3})), init::from_data(Literal::floats({1}, {3})));
  EXPECT_FALSE(init::from_data(Literal::floats({1}, {3})) ==
               init::from_data(Literal::floats({1}, {4})));
}

TEST(Init, every_initialiser_survives_the_text_form) {
  Graph g;
  const std::vector<Initializer> all = {init::zeros(),
                                        init::ones(),
                                        init::constant(0.1),
                                        init::uniform(-1, 2),
                                        init::normal(1, 2),
                                        init::truncated_normal(0, 1, -3, 3),
                                        init::xavier_uniform(2),
                                        init::xavier_normal(),
                                        init::kaiming_uniform(std::sqrt(5.0)),
                                        init::kaiming_normal(0.2),
                                        init::orthogonal(),
                                        init::from_data(Literal::floats({2, 2}, {1, 2, 3, 0.1}))};
  for (std::size_t k = 0; k < all.size(); ++k) g.parameter(fmt::format("p{}", k), {2, 2}, all[k]);
  const ref::Session before(g, 4), after(parse_graph(to_text(g)), 4);
  for (std::size_t k = 0; k < all.size(); ++k)
    EXPECT_EQ(before.value(fmt::format("p{}", k)), after.value(fmt::format("p{}", k)))
        << to_text(all[k]);
}

// --- errors

TEST(Init, arguments_that_make_no_sense_are_errors) {
  const Type matrix{f32, {2, 3}};
  const double nan = std::nan("");
  expect_message(init::uniform(2, 1), matrix, "uniform: low 2 must not be above high 1");
  expect_message(init::uniform(nan, 1), matrix, "uniform: low must be finite, got nan");
  expect_message(init::uniform(0, kInf), matrix, "uniform: high must be finite, got inf");
  expect_message(init::uniform(-1e308, 1e308), matrix,
                 "uniform: high - low must be finite, got inf");
  expect_message(init::normal(0, -1), matrix,
                 "normal: the standard deviation must be finite and not negative, got -1");
  expect_message(init::normal(0, nan), matrix,
                 "normal: the standard deviation must be finite and not negative, got nan");
  expect_message(init::normal(kInf, 1), matrix, "normal: the mean must be finite, got inf");
  expect_message(init::truncated_normal(0, 1, 2, 2), matrix,
                 "truncated_normal: low 2 must be below high 2");
  expect_message(
      init::truncated_normal(0, -1), matrix,
      "truncated_normal: the standard deviation must be finite and not negative, got -1");
  expect_message(init::xavier_uniform(-1), matrix,
                 "xavier_uniform: the gain must be finite and not negative, got -1");
  expect_message(init::xavier_normal(nan), matrix,
                 "xavier_normal: the gain must be finite and not negative, got nan");
  expect_message(init::kaiming_uniform(kInf), matrix,
                 "kaiming_uniform: the slope must be finite, got inf");
  expect_message(init::orthogonal(nan), matrix, "orthogonal: the gain must be finite, got nan");
}

TEST(Init, shapes_that_do_not_fit_are_errors) {
  expect_message(init::kaiming_uniform(), {f32, {3}},
                 "xavier and kaiming initialisers need at least 2 axes, got [3]");
  expect_message(init::xavier_normal(), {f32, {}},
                 "xavier and kaiming initialisers need at least 2 axes, got []");
  expect_message(init::orthogonal(), {f32, {3}}, "orthogonal: needs at least 2 axes, got [3]");
  expect_message(init::from_data(Literal::floats({2}, {1, 2})), {f32, {3}},
                 "data of type f32[2] given for f32[3]");
  expect_message(init::from_data(Literal::floats({2}, {1, 2})), {f64, {2}},
                 "data of type f32[2] given for f64[2]");
}

TEST(Init, integers_take_only_whole_constants) {
  expect_message(init::uniform(), {i64, {2, 3}}, "uniform needs a float type, got i64[2,3]");
  expect_message(init::kaiming_normal(), {i64, {3}},
                 "kaiming_normal needs a float type, got i64[3]");
  expect_message(init::constant(0.5), {i64, {}}, "constant: i64 cannot hold 0.5");
  expect_message(init::constant(std::nan("")), {i32, {}}, "constant: i32 cannot hold nan");
  expect_message(init::constant(1e300), {i64, {}}, "constant: i64 cannot hold 1e+300");
  expect_message(init::constant(256), {u8, {}}, "constant: u8 cannot hold 256");
  expect_message(init::constant(2), {boolean, {}}, "constant: bool cannot hold 2");
}

TEST(Init, data_that_is_missing_is_an_error) {
  Initializer broken;
  broken.kind = Initializer::Kind::data;
  expect_message(broken, {f32, {2}}, "the initialiser has no data");
}

TEST(Init, a_parameter_reports_a_bad_initialiser_at_its_line) {
  Graph g;
  const int line = __LINE__ + 1;
  const auto make = [&] { g.parameter("w", {3}, init::kaiming_uniform()); };
  EXPECT_EQ(tests::message_of<TypeError>(make),
            fmt::format("parameter (init_test.cpp:{}): xavier and kaiming initialisers need at "
                        "least 2 axes, got [3]",
                        line));
}

}  // namespace
}  // namespace pantala
