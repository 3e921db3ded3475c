// Random numbers: the generator against its published vectors, moments of the distributions, and
// what keeps or changes the bits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/philox.h"
#include "ir/graph_data.h"
#include "pantala/ops.h"
#include "pantala/text.h"
#include "support/errors.h"
#include "support/numbers.h"

namespace pantala::tests::random_test {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

// The known answers published with the generator (Random123, kat_vectors).
TEST(Philox, gives_the_published_vectors) {
  constexpr std::uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

ref::Bindings counters(std::int64_t seed, std::int64_t draw) {
  return {{"rng.seed", Literal::integer(seed)}, {"rng.draw", Literal::integer(draw)}};
}

double mean_of(const std::vector<double>& x) {
  double total = 0;
  for (const double v : x) total += v;
  return total / static_cast<double>(x.size());
}
double moment(const std::vector<double>& x, double center, int power) {
  std::vector<double> y;
  for (const double v : x) y.push_back(std::pow(v - center, power));
  return mean_of(y);
}

TEST(Random, bits_are_the_generator_s_words_as_i32) {
  Graph g;
  const Tensor bits = random_bits(g, {2, 3});
  EXPECT_EQ(bits.type(), (Type{i32, {2, 3}}));
  const Literal value = ref::evaluate(g, {bits}, counters(-5, 9))[0];
  for (std::int64_t k = 0; k < 6; ++k)
    EXPECT_EQ(
        static_cast<std::uint32_t>(value.i()[k]),
        pantala::random_bits(static_cast<std::uint64_t>(-5), 9, 0, static_cast<std::uint64_t>(k)));
  // The first four words with all counters 0 are the published vector.
  EXPECT_EQ(static_cast<std::uint32_t>(ref::evaluate(g, {bits}, {})[0].i()[0]), 0x6627e8d5u);
}

TEST(Random, seed_draw_and_stream_change_the_bits_and_nothing_else_does) {
  Graph g;
  const Tensor first = random_bits(g, {64}), second = random_bits(g, {64});
  const auto base = value_of(g, first, counters(1, 2));
  EXPECT_EQ(value_of(g, first, counters(1, 2)), base);
  EXPECT_NE(value_of(g, first, counters(2, 2)), base);
  EXPECT_NE(value_of(g, first, counters(1, 3)), base);
  EXPECT_NE(value_of(g, second, counters(1, 2)), base);
}

TEST(Random, uniform_numbers_have_the_moments_of_their_range) {
  Graph g;
  const auto x = value_of(g, random_uniform(g, {100, 400}, -1, 3), counters(7, 0));
  EXPECT_GE(*std::min_element(x.begin(), x.end()), -1);
  EXPECT_LT(*std::max_element(x.begin(), x.end()), 3);
  // 40,000 numbers: the standard error of the mean is 0.006, that of the variance 16/12 * 0.0045.
  EXPECT_NEAR(mean_of(x), 1, 0.03);
  EXPECT_NEAR(moment(x, 1, 2), 16.0 / 12, 0.03);
}

TEST(Random, normal_numbers_have_the_moments_of_their_distribution) {
  Graph g;
  const auto x = value_of(g, random_normal(g, {50, 800}, 2, 3), counters(11, 4));
  EXPECT_NEAR(mean_of(x), 2, 0.08);
  EXPECT_NEAR(moment(x, 2, 2), 9, 0.3);
  EXPECT_NEAR(moment(x, 2, 3) / 27, 0, 0.07);
  EXPECT_NEAR(moment(x, 2, 4) / 81, 3, 0.2);
  // The two halves of the draw are independent: neighbours do not correlate.
  double product = 0;
  for (std::size_t k = 1; k < x.size(); ++k) product += (x[k] - 2) * (x[k - 1] - 2);
  EXPECT_NEAR(product / static_cast<double>(x.size()) / 9, 0, 0.03);
}

TEST(Random, every_rank_and_float_dtype_can_be_drawn) {
  Graph g;
  for (const DType dtype : {f32, f64, f16, bf16})
    for (const Shape& shape : {Shape{}, Shape{0}, Shape{1, 2, 1, 1, 1, 1, 1, 2}}) {
      EXPECT_EQ(random_uniform(g, shape, 0, 1, dtype).type(), (Type{dtype, shape}));
      const Tensor normal = random_normal(g, shape, 0, 1, dtype);
      EXPECT_EQ(normal.type(), (Type{dtype, shape}));
      EXPECT_EQ(value_of(g, normal).size(), static_cast<std::size_t>(shape.numel()));
    }
}

TEST(Random, ranges_and_attributes_are_checked) {
  Graph g;
  EXPECT_THROW(random_uniform(g, {2}, 1, 0), TypeError);
  EXPECT_THROW(random_uniform(g, {2}, 0, INFINITY), TypeError);
  EXPECT_THROW(random_uniform(g, {2}, -1.7e308, 1.7e308), TypeError);
  EXPECT_THROW(random_uniform(g, {2}, 0, 1, i32), TypeError);
  EXPECT_THROW(random_normal(g, {2}, 0, -1), TypeError);
  EXPECT_THROW(random_normal(g, {2}, NAN, 1), TypeError);
  EXPECT_THAT(message_of<TypeError>([&] { random_normal(g, {2}, 0, -1); }),
              HasSubstr("random_normal (random_test.cpp:"));
}

TEST(Random, dropout_zeroes_a_share_and_keeps_the_mean) {
  Graph g;
  const Tensor x = g.input("x", {200, 200}), y = dropout(x, 0.3);
  ref::Bindings at = counters(3, 1);
  at["x"] = floats({200, 200}, std::vector<double>(40000, 2.0));
  const auto value = value_of(g, y, at);
  const auto zeros = std::count(value.begin(), value.end(), 0.0);
  EXPECT_NEAR(static_cast<double>(zeros) / 40000, 0.3, 0.012);
  EXPECT_EQ(std::count(value.begin(), value.end(), 2.0 * (1 / (1 - 0.3))), 40000 - zeros);
}

TEST(Random, two_dropouts_of_one_value_stay_two) {
  Graph g;
  const Tensor x = g.parameter("x", {64}, init::constant(1)), a = dropout(x), b = dropout(x);
  EXPECT_NE(a, b);
  EXPECT_NE(value_of(g, a), value_of(g, b));
  const Graph copy = g;
  EXPECT_EQ(value_of(copy, copy.value(a.id())), value_of(g, a));
}

TEST(Random, dropout_keeps_its_bits_after_a_text_round_trip_and_new_streams_stay_new) {
  Graph g;
  const Tensor x = g.parameter("x", {64}, init::constant(1));
  random_bits(g, {3});
  g.output("a", dropout(x, 0.4));
  g.output("b", dropout(x, 0.4));
  Graph back = parse_graph(to_text(g));
  EXPECT_EQ(to_text(back), to_text(g));
  for (const char* name : {"a", "b"})
    EXPECT_EQ(value_of(back, back.output(name), counters(5, 6)),
              value_of(g, g.output(name), counters(5, 6)));
  const Tensor fresh = dropout(back.leaf("x"), 0.4);
  EXPECT_NE(fresh, back.output("a"));
  EXPECT_NE(fresh, back.output("b"));
}

TEST(Random, the_gradient_of_dropout_uses_the_mask_that_ran) {
  Graph g;
  const Tensor x = g.parameter("x", {50}, init::constant(1)), y = dropout(x, 0.5);
  EXPECT_EQ(gradients_of(g, sum(y), {x}, counters(8, 2))[0], value_of(g, y, counters(8, 2)));
}

TEST(Random, dropout_with_p_zero_changes_nothing_and_p_outside_the_range_is_an_error) {
  Graph g;
  const Tensor x = g.parameter("x", {1000}, init::constant(0.375));
  EXPECT_THAT(value_of(g, dropout(x, 0)), Each(0.375));
  for (const double p : {1.0, -0.1, 2.0, std::nan("")}) EXPECT_THROW(dropout(x, p), TypeError);
  EXPECT_THROW(dropout(g.input("i", {2}, i64), 0.5), TypeError);
}

TEST(Random, a_stream_that_does_not_fit_the_counter_is_an_error) {
  Graph g;
  random_bits(g, {2});
  std::string text = to_text(g);
  const std::size_t at = text.find("stream=0");
  ASSERT_NE(at, std::string::npos) << text;
  for (const char* bad : {"stream=-1", "stream=4294967296", "stream=9223372036854775807"}) {
    std::string changed = text;
    EXPECT_THROW(parse_graph(changed.replace(at, 8, bad)), TypeError) << bad;
  }
}

}  // namespace
}  // namespace pantala::tests::random_test
