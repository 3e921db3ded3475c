// Section 5 of the checklist: gradient accumulation.
#include "pantala/accumulation.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "pantala/ops.h"
#include "support/errors.h"
#include "support/numbers.h"

namespace pantala::tests::accumulation_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Values = std::vector<double>;

// A gradient with one axis.
Literal grad(Values values) {
  const Shape shape{static_cast<std::int64_t>(values.size())};
  return Literal::floats(shape, std::move(values), f64);
}

GradientAccumulator accumulator(AccumulationConfig config,
                                const std::vector<std::pair<std::string, Shape>>& parameters) {
  GradientAccumulator a(config);
  for (const auto& [name, shape] : parameters) a.register_parameter(name, shape);
  return a;
}
GradientAccumulator accumulator(std::int64_t steps,
                                const std::vector<std::pair<std::string, Shape>>& parameters) {
  return accumulator(AccumulationConfig::with_steps(steps), parameters);
}

Values gradient_of(const GradientAccumulator& a, std::string_view name) {
  return a.gradients().find(name)->second.to_doubles();
}

TEST(GradientAccumulation, G01_defaults) {
  const AccumulationConfig config;
  EXPECT_EQ(config.accumulation_steps, 4);
  EXPECT_TRUE(config.normalize);
  EXPECT_FALSE(config.max_grad_norm.has_value());
  EXPECT_EQ(config.effective_batch_size(32), 128);
}

TEST(GradientAccumulation, G02_zero_steps_by_name_are_one) {
  const AccumulationConfig config = AccumulationConfig::with_steps(0);
  EXPECT_EQ(config.accumulation_steps, 1);
  EXPECT_TRUE(config.normalize);
  EXPECT_FALSE(config.max_grad_norm.has_value());
  EXPECT_EQ(config.non_finite, NonFinite::error);
  EXPECT_EQ(AccumulationConfig::with_steps(7).accumulation_steps, 7);
}

TEST(GradientAccumulation, G03_zero_steps_by_hand_are_an_error) {
  for (const std::int64_t steps : {0, -3}) {
    AccumulationConfig config;
    config.accumulation_steps = steps;
    EXPECT_THAT(message_of<TypeError>([&] { GradientAccumulator a(config); }),
                HasSubstr(std::to_string(steps)));
  }
}

TEST(GradientAccumulation, G04_the_maximum_norm_must_be_positive_and_finite) {
  for (const double norm : {0.0, -1.0, std::nan(""), double{INFINITY}}) {
    AccumulationConfig config;
    config.max_grad_norm = norm;
    EXPECT_THROW(GradientAccumulator a(config), TypeError) << norm;
  }
}

TEST(GradientAccumulation, G05_a_new_buffer_is_zero) {
  const GradientBuffer buffer({3, 4});
  EXPECT_EQ(buffer.sum(), Values(12, 0.0));
  EXPECT_EQ(buffer.count(), 0);
  EXPECT_EQ(GradientBuffer(Shape{}).sum().size(), 1u);
  static_assert(std::is_same_v<decltype(GradientBuffer(Shape{}).sum()), Values>);
  static_assert(std::is_same_v<decltype(GradientBuffer(Shape{}).shape()), Shape>);
  static_assert(std::is_same_v<decltype(buffer.sum()), const Values&>);
}

TEST(GradientAccumulation, G06_a_buffer_sums_and_resets) {
  GradientBuffer buffer({3});
  buffer.accumulate(Values{1, 2, 3});
  buffer.accumulate(Values{1, 2, 3}, {3});
  EXPECT_EQ(buffer.sum(), (Values{2, 4, 6}));
  EXPECT_EQ(buffer.count(), 2);
  buffer.reset();
  EXPECT_EQ(buffer.sum(), (Values{0, 0, 0}));
  EXPECT_EQ(buffer.count(), 0);
  EXPECT_EQ(buffer.shape(), (Shape{3}));
}

TEST(GradientAccumulation, G07_another_shape_changes_nothing) {
  GradientBuffer buffer({3});
  buffer.accumulate(Values{1, 2, 3});
  try {
    buffer.accumulate(Values{1, 2});
    ADD_FAILURE() << "no error was thrown";
  } catch (const ShapeMismatch& error) {
    EXPECT_EQ(error.expected(), (Shape{3}));
    EXPECT_EQ(error.got(), (Shape{2}));
    EXPECT_THAT(error.what(), AllOf(HasSubstr("[3]"), HasSubstr("[2]")));
  }
  EXPECT_THROW(buffer.accumulate(Values{1, 2, 3}, {3, 1}), ShapeMismatch);
  EXPECT_EQ(buffer.sum(), (Values{1, 2, 3}));
  EXPECT_EQ(buffer.count(), 1);
}

TEST(GradientAccumulation, G08_mean_and_sum_leave_the_buffer) {
  GradientBuffer buffer({2});
  buffer.accumulate(Values{2, 4});
  buffer.accumulate(Values{6, 8});
  EXPECT_EQ(buffer.get(true), (Values{4, 6}));
  EXPECT_EQ(buffer.get(false), (Values{8, 12}));
  EXPECT_EQ(buffer.sum(), (Values{8, 12}));
  EXPECT_EQ(buffer.count(), 2);
}

TEST(GradientAccumulation, G09_the_mean_of_nothing_is_zero) {
  EXPECT_EQ(GradientBuffer({2}).get(true), (Values{0, 0}));
}

TEST(GradientAccumulation, G10_the_norm_is_that_of_the_raw_sum) {
  GradientBuffer buffer({2});
  buffer.accumulate(Values{3, 4});
  EXPECT_NEAR(buffer.l2_norm(), 5, 1e-10);
  buffer.accumulate(Values{3, 4});
  EXPECT_NEAR(buffer.l2_norm(), 10, 1e-10);
  // Squares that a double cannot hold do not matter.
  GradientBuffer large({2}), small({2});
  large.accumulate(Values{3e200, 4e200});
  small.accumulate(Values{3e-200, 4e-200});
  EXPECT_NEAR(large.l2_norm() / 1e200, 5, 1e-10);
  EXPECT_NEAR(small.l2_norm() * 1e200, 5, 1e-10);
  EXPECT_EQ(GradientBuffer({2}).l2_norm(), 0);
}

TEST(GradientAccumulation, G11_registering_again_changes_nothing) {
  GradientAccumulator a;
  for (const Shape& shape : {Shape{3, 4}, Shape{3, 4}, Shape{7}}) {
    a.register_parameter("weight", shape);
    EXPECT_EQ(a.stats().parameters, 1);
    EXPECT_EQ(a.stats().elements, 12);
  }
  EXPECT_EQ(a.buffer("weight").shape(), (Shape{3, 4}));
}

TEST(GradientAccumulation, G12_an_unregistered_name_is_named) {
  GradientAccumulator a = accumulator(2, {{"weight", {1}}});
  EXPECT_THAT(message_of<UnknownParameter>([&] { a.accumulate("wieght", grad({1})); }),
              AllOf(HasSubstr("'wieght'"), HasSubstr("'weight'")));
  EXPECT_THROW(a.step({{"bias", grad({1})}}), UnknownParameter);
}

TEST(GradientAccumulation, G13_a_shape_mismatch_names_the_parameter_and_both_shapes) {
  GradientAccumulator a = accumulator(2, {{"weight", {3, 4}}});
  try {
    a.accumulate("weight", grad({1, 2}));
    ADD_FAILURE() << "no error was thrown";
  } catch (const ShapeMismatch& error) {
    EXPECT_EQ(error.parameter(), "weight");
    EXPECT_THAT(error.what(), AllOf(HasSubstr("'weight'"), HasSubstr("[3,4]"), HasSubstr("[2]")));
  }
}

TEST(GradientAccumulation, G14_a_full_parameter_refuses_the_next) {
  GradientAccumulator a = accumulator(2, {{"w", {1}}});
  a.accumulate("w", grad({1}));
  a.accumulate("w", grad({2}));
  EXPECT_THAT(message_of<AccumulatorFull>([&] { a.accumulate("w", grad({4})); }),
              AllOf(HasSubstr("'w'"), HasSubstr("2")));
  EXPECT_EQ(a.buffer("w").sum(), (Values{3}));
  EXPECT_EQ(a.buffer("w").count(), 2);
}

TEST(GradientAccumulation, G15_full_is_judged_per_parameter_and_before_the_shape) {
  GradientAccumulator a = accumulator(1, {{"a", {1}}, {"b", {1}}});
  a.accumulate("a", grad({1}));
  EXPECT_THROW(a.accumulate("a", grad({1, 2})), AccumulatorFull);
  EXPECT_NO_THROW(a.accumulate("b", grad({1})));
}

TEST(GradientAccumulation, G16_an_update_is_due_as_soon_as_one_parameter_is_full) {
  EXPECT_FALSE(GradientAccumulator().should_update());
  GradientAccumulator a = accumulator(2, {{"a", {1}}, {"b", {1}}});
  EXPECT_FALSE(a.should_update());
  a.accumulate("a", grad({1}));
  EXPECT_FALSE(a.should_update());
  a.accumulate("a", grad({1}));
  EXPECT_TRUE(a.should_update());
}

TEST(GradientAccumulation, G17_two_steps_give_the_mean) {
  GradientAccumulator a = accumulator(2, {{"w", {2}}});
  a.accumulate("w", grad({2, 4}));
  a.accumulate("w", grad({6, 8}));
  EXPECT_EQ(gradient_of(a, "w"), (Values{4, 6}));
}

TEST(GradientAccumulation, G18_the_mean_divides_by_what_a_parameter_received) {
  GradientAccumulator a = accumulator(4, {{"w", {2}}, {"v", {1}}});
  a.accumulate("w", grad({0.1, 0.7}));
  a.accumulate("v", grad({1}));
  a.accumulate("v", grad({3}));
  EXPECT_EQ(gradient_of(a, "w"), (Values{0.1, 0.7}));
  EXPECT_EQ(gradient_of(a, "v"), (Values{2}));
  AccumulationConfig sums;
  sums.normalize = false;
  GradientAccumulator b = accumulator(sums, {{"w", {2}}});
  b.accumulate("w", grad({2, 4}));
  b.accumulate("w", grad({6, 8}));
  EXPECT_EQ(gradient_of(b, "w"), (Values{8, 12}));
}

TEST(GradientAccumulation, G19_clipping_scales_by_maximum_over_norm) {
  AccumulationConfig config;
  config.normalize = false;
  config.max_grad_norm = 5;
  GradientAccumulator a = accumulator(config, {{"w", {2}}});
  a.accumulate("w", grad({30, 40}));
  expect_close(gradient_of(a, "w"), {3, 4}, 1e-10);
  // No epsilon: a tiny norm above a tinier maximum is met too.
  config.max_grad_norm = 1e-20;
  GradientAccumulator b = accumulator(config, {{"w", {2}}});
  b.accumulate("w", grad({3e-15, 4e-15}));
  EXPECT_NEAR(gradient_of(b, "w")[0] * 1e20, 0.6, 1e-10);
  EXPECT_NEAR(gradient_of(b, "w")[1] * 1e20, 0.8, 1e-10);
}

TEST(GradientAccumulation, G20_the_norm_is_over_all_parameters_after_normalisation) {
  AccumulationConfig config;
  config.max_grad_norm = 2.5;
  GradientAccumulator a = accumulator(config, {{"a", {1}}, {"b", {1}}});
  for (int k = 0; k < 2; ++k) a.step({{"a", grad({3})}, {"b", grad({4})}});
  expect_close(gradient_of(a, "a"), {1.5}, 1e-12);
  expect_close(gradient_of(a, "b"), {2}, 1e-12);
}

TEST(GradientAccumulation, G21_a_norm_at_or_below_the_maximum_leaves_every_bit) {
  for (const double most : {5.0, 5.5}) {
    AccumulationConfig config;
    config.max_grad_norm = most;
    GradientAccumulator a = accumulator(config, {{"w", {2}}});
    a.accumulate("w", grad({3, 4}));
    EXPECT_EQ(gradient_of(a, "w"), (Values{3, 4}));
  }
}

TEST(GradientAccumulation, G22_nothing_accumulated_is_an_error_but_a_missing_share_is_zeros) {
  EXPECT_THROW(GradientAccumulator().gradients(), NoGradients);
  GradientAccumulator a = accumulator(2, {{"a", {2}}, {"b", {1, 3}}});
  EXPECT_THROW(a.gradients(), NoGradients);
  a.accumulate("a", grad({1, 2}));
  EXPECT_EQ(a.gradients().at("b"), Literal::floats({1, 3}, {0, 0, 0}, f64));
}

TEST(GradientAccumulation, G23_reading_changes_nothing_and_is_allowed_early) {
  AccumulationConfig config;
  config.max_grad_norm = 0.1;
  GradientAccumulator a = accumulator(config, {{"w", {2}}});
  a.step({{"w", grad({1.0 / 3, 0.7})}});
  const NamedGradients first = a.gradients();
  EXPECT_EQ(a.gradients(), first);
  EXPECT_EQ(a.buffer("w").sum(), (Values{1.0 / 3, 0.7}));
  EXPECT_FALSE(a.should_update());
}

TEST(GradientAccumulation, G24_a_step_adds_all_and_counts_one) {
  GradientAccumulator a = accumulator(2, {{"a", {1}}, {"b", {2}}});
  EXPECT_FALSE(a.step({{"a", grad({1})}, {"b", grad({2, 3})}}));
  EXPECT_EQ(a.stats().micro_batches, 1);
  EXPECT_TRUE(a.step({{"a", grad({1})}, {"b", grad({2, 3})}}));
  EXPECT_EQ(a.stats().micro_batches, 2);
  EXPECT_EQ(a.buffer("a").sum(), (Values{2}));
  EXPECT_EQ(a.buffer("b").sum(), (Values{4, 6}));
}

TEST(GradientAccumulation, G25_a_step_with_one_bad_entry_adds_nothing) {
  GradientAccumulator a = accumulator(2, {{"a", {1}}, {"m", {1}}, {"z", {1}}});
  a.accumulate("m", grad({1}));
  const auto expect_refused = [&](const NamedGradients& gradients, double weight = 1) {
    EXPECT_THROW(a.step(gradients, weight), Error);
    EXPECT_EQ(a.stats().micro_batches, 0);
    EXPECT_EQ(a.buffer("a").count() + a.buffer("z").count(), 0);
    EXPECT_EQ(a.buffer("a").sum(), (Values{0}));
  };
  expect_refused({{"a", grad({1})}, {"z", grad({1, 2})}});      // a shape
  expect_refused({{"a", grad({1})}, {"zz", grad({1})}});        // a name
  expect_refused({{"a", grad({1})}, {"z", grad({INFINITY})}});  // a value
  expect_refused({{"a", grad({1})}, {"z", ints({1}, {1})}});    // a dtype
  expect_refused({{"a", grad({1})}, {"z", grad({1})}}, 0);      // a weight
  a.accumulate("m", grad({1}));
  expect_refused({{"a", grad({1})}, {"m", grad({1})}});  // a full parameter
}

TEST(GradientAccumulation, G26_only_named_parameters_advance_and_accumulate_counts_no_micro_batch) {
  GradientAccumulator a = accumulator(2, {{"a", {1}}, {"b", {1}}});
  a.step({{"a", grad({1})}});
  EXPECT_EQ(a.buffer("a").count(), 1);
  EXPECT_EQ(a.buffer("b").count(), 0);
  a.accumulate("b", grad({1}));
  EXPECT_EQ(a.buffer("b").count(), 1);
  EXPECT_EQ(a.stats().micro_batches, 1);
}

TEST(GradientAccumulation, G27_reset_counts_an_update_and_keeps_the_rest) {
  GradientAccumulator a = accumulator(2, {{"a", {2}}});
  a.reset();
  EXPECT_EQ(a.stats().updates, 1);
  a.step({{"a", grad({1, 2})}});
  a.reset();
  EXPECT_EQ(a.stats().updates, 2);
  EXPECT_EQ(a.stats().micro_batches, 1);
  EXPECT_EQ(a.stats().parameters, 1);
  EXPECT_EQ(a.buffer("a").sum(), (Values{0, 0}));
  EXPECT_EQ(a.buffer("a").count(), 0);
  GradientAccumulator empty;
  empty.reset();
  EXPECT_EQ(empty.stats().updates, 1);
}

TEST(GradientAccumulation, G28_statistics) {
  const AccumulationStats s = accumulator(3, {{"a", {2, 3}}, {"b", {4}}}).stats();
  EXPECT_EQ(s.micro_batches, 0);
  EXPECT_EQ(s.updates, 0);
  EXPECT_EQ(s.accumulation_steps, 3);
  EXPECT_EQ(s.parameters, 2);
  EXPECT_EQ(s.elements, 10);
  EXPECT_EQ(s.effective_batch_multiplier(), 3);
}

TEST(GradientAccumulation, G29_two_windows_of_two) {
  GradientAccumulator a = accumulator(2, {{"w", {1}}});
  for (int k = 0; k < 4; ++k)
    if (a.step({{"w", grad({1})}})) a.reset();
  EXPECT_EQ(a.stats().micro_batches, 4);
  EXPECT_EQ(a.stats().updates, 2);
}

TEST(GradientAccumulation, G30_the_component_works_in_double) {
  // 2^30 + 1 has no f32: an f32 sum would lose the ones.
  GradientAccumulator a = accumulator(2, {{"w", {1}}});
  a.step({{"w", grad({0x1p30})}});
  a.step({{"w", grad({2})}});
  EXPECT_EQ(a.gradients().at("w"), Literal::floats({1}, {0x1p29 + 1}, f64));
}

TEST(GradientAccumulation, G31_results_do_not_depend_on_the_order_of_names) {
  // Magnitudes so far apart that another order of summation would give another norm.
  std::vector<std::pair<std::string, double>> values;
  for (int k = 0; k < 40; ++k)
    values.emplace_back(fmt::format("p{}", k * 7919 % 101), std::ldexp(1 + k * 0.137, k % 13 - 6));
  AccumulationConfig config;
  config.max_grad_norm = 0.5;
  NamedGradients expected;
  for (int order = 0; order < 4; ++order) {
    GradientAccumulator a(config);
    for (const auto& [name, value] : values) a.register_parameter(name, {1});
    for (const auto& [name, value] : values) a.accumulate(name, grad({value}));
    if (order == 0) expected = a.gradients();
    EXPECT_EQ(a.gradients(), expected);  // literals compare by bits
    std::rotate(values.begin(), values.begin() + 11, values.end());
    if (order == 1) std::reverse(values.begin(), values.end());
  }
}

// The gradients of a linear regression on items [first, first + count), averaged over these items.
NamedGradients regression_gradients(std::int64_t first, std::int64_t count) {
  Graph g;
  const Tensor x = g.input("x", {count, 3}, f64), target = g.input("target", {count, 2}, f64);
  const Tensor weight = g.parameter("weight", {2, 3}, init::constant(0.3), f64),
               bias = g.parameter("bias", {2}, init::constant(-0.1), f64);
  const Tensor error = linear(x, weight, bias) - target;
  const Gradients d = differentiate(g, mean(error * error), {weight, bias});
  Values inputs, targets;
  for (std::int64_t item = first; item < first + count; ++item) {
    for (int k = 0; k < 3; ++k) inputs.push_back(std::sin(static_cast<double>(item * 3 + k)));
    for (int k = 0; k < 2; ++k) targets.push_back(std::cos(static_cast<double>(item * 5 + k)) * 2);
  }
  const auto values = ref::evaluate(
      d.graph, d.gradients,
      {{"x", floats({count, 3}, inputs, f64)}, {"target", floats({count, 2}, targets, f64)}});
  return {{"weight", values[0]}, {"bias", values[1]}};
}

TEST(GradientAccumulation, G32_every_split_of_a_batch_gives_its_gradient) {
  const NamedGradients whole = regression_gradients(0, 16);
  const std::vector<std::vector<std::int64_t>> splits = {
      {16}, {4, 4, 4, 4}, std::vector<std::int64_t>(16, 1), {5, 5, 6}, {7, 7, 2}};
  for (const auto& split : splits) {
    GradientAccumulator a =
        accumulator(static_cast<std::int64_t>(split.size()), {{"weight", {2, 3}}, {"bias", {2}}});
    std::int64_t first = 0;
    bool due = false;
    for (const std::int64_t count : split) {
      EXPECT_FALSE(due);
      due = a.step(regression_gradients(first, count), static_cast<double>(count));
      first += count;
    }
    EXPECT_TRUE(due);
    for (const char* name : {"weight", "bias"})
      expect_close(gradient_of(a, name), whole.at(name).to_doubles(), 1e-12);
  }
  // Without the weights a short micro-batch counts too much.
  GradientAccumulator unweighted = accumulator(3, {{"weight", {2, 3}}, {"bias", {2}}});
  unweighted.step(regression_gradients(0, 7));
  unweighted.step(regression_gradients(7, 7));
  unweighted.step(regression_gradients(14, 2));
  EXPECT_GT(std::fabs(gradient_of(unweighted, "bias")[0] - whole.at("bias").at(0)), 1e-3);
}

TEST(GradientAccumulation, G33_non_finite_gradients_by_option) {
  AccumulationConfig config = AccumulationConfig::with_steps(2);
  const std::vector<std::pair<std::string, Shape>> parameters = {{"a", {1}}, {"b", {2}}};
  const NamedGradients good = {{"a", grad({1})}, {"b", grad({2, 3})}};

  for (const double bad : {std::nan(""), double{INFINITY}, -double{INFINITY}}) {
    const NamedGradients broken = {{"a", grad({5})}, {"b", grad({5, bad})}};
    config.non_finite = NonFinite::error;
    GradientAccumulator strict = accumulator(config, parameters);
    EXPECT_THAT(message_of<NonFiniteGradient>([&] { strict.step(broken); }),
                AllOf(HasSubstr("'b'"), HasSubstr("element 1")));
    EXPECT_THROW(strict.accumulate("b", broken.at("b")), NonFiniteGradient);
    EXPECT_EQ(strict.buffer("a").count(), 0);
    EXPECT_EQ(strict.stats().micro_batches, 0);

    // The whole micro-batch is left out, and the window waits for another.
    config.non_finite = NonFinite::skip;
    GradientAccumulator skipping = accumulator(config, parameters);
    EXPECT_FALSE(skipping.step(good));
    EXPECT_FALSE(skipping.step(broken));
    EXPECT_FALSE(skipping.accumulate("b", broken.at("b")));
    EXPECT_EQ(skipping.stats().skipped, 1);
    EXPECT_EQ(skipping.stats().micro_batches, 1);
    EXPECT_TRUE(skipping.step(good));
    EXPECT_EQ(gradient_of(skipping, "a"), (Values{1}));
    EXPECT_EQ(gradient_of(skipping, "b"), (Values{2, 3}));

    config.non_finite = NonFinite::propagate;
    GradientAccumulator passing = accumulator(config, parameters);
    passing.step(good);
    EXPECT_TRUE(passing.step(broken));
    EXPECT_EQ(gradient_of(passing, "a"), (Values{3}));
    EXPECT_EQ(gradient_of(passing, "b")[0], 3.5);
    EXPECT_FALSE(std::isfinite(gradient_of(passing, "b")[1]));

    // Clipped all the same: by max / norm, which is 0 for an infinite norm and undefined for an
    // undefined one.
    AccumulationConfig clipped = config;
    clipped.max_grad_norm = 1;
    GradientAccumulator limited = accumulator(clipped, parameters);
    limited.step(broken);
    const double other = gradient_of(limited, "a")[0];
    EXPECT_TRUE(std::isnan(bad) ? std::isnan(other) : other == 0) << other;
    EXPECT_FALSE(std::isfinite(gradient_of(limited, "b")[1]));
  }
}

}  // namespace
}  // namespace pantala::tests::accumulation_test
