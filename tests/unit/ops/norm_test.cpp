// Softmax and the normalisations: their values in hard places, saved statistics, gradient rules
// against their definitions, and errors.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numbers>

#include "base/hash.h"
#include "base/philox.h"
#include "ir/graph_data.h"
#include "ops/table.h"
#include "pantala/ops.h"
#include "support/errors.h"
#include "support/gradcheck.h"
#include "support/numbers.h"

namespace pantala::tests::norm_test {
namespace {

using ::testing::HasSubstr;

// A constant of f64 numbers in [centre - 1, centre + 1), different for each name.
Tensor noise(Graph& g, const std::string& name, const Shape& shape, double centre = 0) {
  Literal values(Type{f64, shape});
  for (std::int64_t k = 0; k < values.numel(); ++k)
    values.f()[k] = centre - 1 +
                    2 * bits_to_unit(random_bits(fnv1a(name), 0, 0, static_cast<std::uint64_t>(k)));
  return g.constant(values);
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double worst = a.size() == b.size() ? 0 : INFINITY;
  for (std::size_t k = 0; k < a.size() && k < b.size(); ++k)
    worst = std::max(worst, std::isfinite(a[k]) ? std::fabs(a[k] - b[k]) : INFINITY);
  return worst;
}

// The gradients of sum(y * weights) by the rule of the op and by central differences.
void expect_rule_agrees(const std::vector<Shape>& shapes,
                        const std::function<Tensor(const std::vector<Tensor>&)>& build,
                        const std::vector<double>& centres) {
  Graph g;
  std::vector<Tensor> parameters;
  ref::Bindings bindings;
  for (std::size_t k = 0; k < shapes.size(); ++k) {
    const std::string name = fmt::format("p{}", k);
    parameters.push_back(g.parameter(name, shapes[k], init::zeros(), f64));
    bindings[name] = draw({shapes[k], centres[k] - 0.7, centres[k] + 0.7, f64, false}, name);
  }
  const Tensor y = build(parameters);
  EXPECT_EQ(
      check_gradients(g, sum(y * noise(g, "upstream", y.shape(), 1.5)), parameters, bindings, 1e-6),
      "");
}

std::size_t count_nodes(const Graph& graph, std::string_view op) {
  std::size_t count = 0;
  for (const ir::Node& node : graph.data()->nodes()) count += node.op->name == op;
  return count;
}

TEST(Softmax, rows_sum_to_one) {
  Graph g;
  const Tensor y = softmax(noise(g, "x", {3, 7, 2}) * 4.0, 1);
  for (const double total : value_of(g, sum(y, {1}))) EXPECT_NEAR(total, 1, 1e-14);
  for (const double p : value_of(g, y)) EXPECT_GT(p, 0);
}

TEST(Softmax, is_unchanged_by_a_shift_of_ten_thousand) {
  Graph g;
  const Tensor x = noise(g, "x", {4, 6});
  EXPECT_LT(largest_difference(value_of(g, softmax(x + 1e4)), value_of(g, softmax(x))), 1e-11);
  EXPECT_LT(largest_difference(value_of(g, log_softmax(x - 1e4)), value_of(g, log_softmax(x))),
            1e-11);
}

TEST(Softmax, entries_of_minus_infinity_have_probability_zero_and_finite_gradients) {
  Graph g;
  const Tensor x = g.parameter("x", {2, 3});
  const ref::Bindings at{{"x", floats({2, 3}, {0, -INFINITY, 0, 1, 2, -INFINITY})}};
  expect_close(value_of(g, softmax(x), at),
               {0.5, 0, 0.5, 1 / (1 + std::numbers::e), std::numbers::e / (1 + std::numbers::e), 0},
               1e-14);
  EXPECT_EQ(value_of(g, log_softmax(x), at)[1], -INFINITY);
  const Tensor weights = g.constant(floats({2, 3}, {1, 2, 3, 4, 5, 6}));
  const auto gradient = [&](const Tensor& y) {
    return gradients_of(g, sum(y * weights), {x}, at)[0];
  };
  expect_close(gradient(softmax(x)),
               {-0.5, 0, 0.5, -std::numbers::e / ((1 + std::numbers::e) * (1 + std::numbers::e)),
                std::numbers::e / ((1 + std::numbers::e) * (1 + std::numbers::e)), 0},
               1e-14);
  for (const double d : gradient(log_softmax(x))) EXPECT_TRUE(std::isfinite(d));
}

TEST(Softmax, log_softmax_keeps_digits_where_softmax_is_zero) {
  Graph g;
  const Tensor x = g.constant(floats({2}, {0, -2000}));
  EXPECT_EQ(value_of(g, softmax(x))[1], 0);
  EXPECT_EQ(value_of(g, log_softmax(x))[1], -2000);
}

TEST(Softmax, an_empty_axis_gives_nothing_and_a_missing_one_is_an_error) {
  Graph g;
  EXPECT_TRUE(value_of(g, softmax(noise(g, "x", {3, 0}), 1)).empty());
  EXPECT_TRUE(value_of(g, log_softmax(noise(g, "y", {3, 0}), 1)).empty());
  EXPECT_THROW(softmax(g.input("z", {3}), 1), TypeError);
  EXPECT_THROW(log_softmax(g.input("s", {})), TypeError);
  EXPECT_TRUE(value_of(g, softmax(noise(g, "e", {0, 3}))).empty());
}

TEST(LayerNorm, without_weight_and_bias_has_mean_zero_and_variance_one) {
  Graph g;
  const Tensor y = layer_norm(noise(g, "x", {5, 16}) * 3.0 + 7.0, {}, {}, {.eps = 0});
  for (const double m : value_of(g, mean(y, {-1}))) EXPECT_NEAR(m, 0, 1e-13);
  for (const double v : value_of(g, var(y, {-1}, {.unbiased = false}))) EXPECT_NEAR(v, 1, 1e-13);
}

TEST(LayerNorm, a_bias_alone_is_added) {
  Graph g;
  const Tensor x = noise(g, "x", {3, 4}), bias = noise(g, "b", {4});
  EXPECT_LT(
      largest_difference(value_of(g, layer_norm(x, {}, bias)), value_of(g, layer_norm(x) + bias)),
      1e-15);
}

TEST(LayerNorm, a_large_mean_costs_no_digits) {
  Graph g;
  const Tensor x = noise(g, "x", {4, 64});
  // Sums of the shifted numbers round at 2^-53 of 1e7: nothing but that is lost.
  EXPECT_LT(largest_difference(value_of(g, layer_norm(x + 1e6)), value_of(g, layer_norm(x))), 1e-8);
}

TEST(LayerNorm, saves_mean_and_reciprocal_deviation) {
  Graph g;
  const Tensor x = g.constant(floats({1, 4}, {1, 3, 5, 7}));
  const std::vector<Tensor> results = ops::apply("layer_norm", {x}, {{"eps", 0.0}});
  EXPECT_EQ(results[1].shape(), (Shape{1}));
  EXPECT_DOUBLE_EQ(value_of(g, results[1])[0], 4);
  EXPECT_DOUBLE_EQ(value_of(g, results[2])[0], 1 / std::sqrt(5.0));
}

TEST(LayerNorm, the_gradient_rule_agrees_with_central_differences) {
  const auto full = [](const std::vector<Tensor>& p) { return layer_norm(p[0], p[1], p[2]); };
  expect_rule_agrees({{2, 3, 5}, {5}, {5}}, full, {0, 1, 0});
  expect_rule_agrees({{6}, {6}, {6}}, full, {0, 1, 0});
  expect_rule_agrees({{4, 5}}, [](const std::vector<Tensor>& p) { return layer_norm(p[0]); }, {0});
  expect_rule_agrees({{4, 5}, {5}},
                     [](const std::vector<Tensor>& p) { return layer_norm(p[0], {}, p[1]); },
                     {0, 0});
}

TEST(LayerNorm, the_gradient_is_one_op_that_reads_the_saved_statistics) {
  Graph g;
  const Tensor x = g.parameter("x", {3, 4}), w = g.parameter("w", {4}), b = g.parameter("b", {4});
  const Gradients d = differentiate(g, sum(square(layer_norm(x, w, b))), {x, w, b});
  EXPECT_EQ(count_nodes(d.graph, "layer_norm"), 1u);
  EXPECT_EQ(count_nodes(d.graph, "layer_norm_grad"), 1u);
}

TEST(LayerNorm, errors_name_inputs_and_shapes) {
  Graph g;
  const Tensor x = g.input("x", {3, 4});
  EXPECT_THAT(message_of<TypeError>([&] { layer_norm(x, g.input("w", {3})); }),
              HasSubstr("weight must have shape [4], got f32[3]"));
  EXPECT_THAT(message_of<TypeError>([&] { layer_norm(x, {}, {}, {.eps = -1}); }), HasSubstr("eps"));
  EXPECT_THROW(layer_norm(x, {}, {}, {.eps = NAN}), TypeError);
  EXPECT_THROW(layer_norm(g.input("i", {3}, i32)), TypeError);
  EXPECT_THROW(layer_norm(g.input("e", {3, 0})), TypeError);
}

TEST(RmsNorm, divides_by_the_root_of_the_mean_square) {
  Graph g;
  const Tensor x = g.constant(floats({1, 2}, {3, 4})), w = g.constant(floats({2}, {1, 10}));
  const double root = std::sqrt(12.5);
  expect_close(value_of(g, rms_norm(x, w, {.eps = 0})), {3 / root, 40 / root}, 1e-14);
  expect_close(value_of(g, rms_norm(x, {}, {.eps = 12.5})), {3 / 5.0, 4 / 5.0}, 1e-14);
}

TEST(RmsNorm, the_gradient_rule_agrees_with_central_differences) {
  expect_rule_agrees({{2, 3, 5}, {5}},
                     [](const std::vector<Tensor>& p) { return rms_norm(p[0], p[1]); }, {0.5, 1});
  expect_rule_agrees({{6}}, [](const std::vector<Tensor>& p) { return rms_norm(p[0]); }, {0.5});
}

TEST(GroupNorm, of_one_group_is_layer_norm_of_all_channels_and_positions) {
  Graph g;
  const Tensor x = noise(g, "x", {2, 6, 4, 5}, 2);
  EXPECT_LT(largest_difference(value_of(g, group_norm(x, 1)),
                               value_of(g, layer_norm(reshape(x, {2, 120})))),
            1e-13);
}

TEST(GroupNorm, the_gradient_rule_agrees_with_central_differences) {
  expect_rule_agrees({{2, 4, 3}, {4}, {4}},
                     [](const std::vector<Tensor>& p) { return group_norm(p[0], 2, p[1], p[2]); },
                     {0, 1, 0});
  expect_rule_agrees({{3, 6}}, [](const std::vector<Tensor>& p) { return group_norm(p[0], 2); },
                     {0});
}

TEST(GroupNorm, groups_must_divide_the_channels) {
  Graph g;
  const Tensor x = g.input("x", {2, 6, 4});
  EXPECT_THAT(message_of<TypeError>([&] { group_norm(x, 4); }),
              HasSubstr("4 groups do not divide the channels (axis 1): x f32[2,6,4]"));
  EXPECT_THROW(group_norm(x, 0), TypeError);
  EXPECT_THROW(group_norm(x, INT64_MIN), TypeError);
  EXPECT_THROW(group_norm(g.input("v", {6}), 2), TypeError);
  EXPECT_THROW(group_norm(g.input("e", {2, 6, 0}), 2), TypeError);
}

struct BatchNorm : ::testing::Test {
  Graph g;
  Tensor x = g.parameter("x", {2, 2, 2}), weight = g.parameter("weight", {2}, init::ones()),
         bias = g.parameter("bias", {2});
  Tensor running_mean = g.state("mean", {2}), running_var = g.state("var", {2}, init::ones());
  ref::Bindings at{{"x", floats({2, 2, 2}, {1, 2, 10, 20, 3, 6, 30, 60})}};
};

TEST_F(BatchNorm, running_variance_is_unbiased_while_the_result_uses_the_biased_one) {
  const BatchNormResult r =
      batch_norm_train(x, weight, bias, running_mean, running_var, {.momentum = 0.25, .eps = 0});
  // Channel 0 holds 1, 2, 3, 6: mean 3, squares 14.
  expect_close(value_of(g, r.running_mean, at), {0.75, 7.5}, 1e-14);
  expect_close(value_of(g, r.running_var, at), {0.75 + 0.25 * 14 / 3, 0.75 + 0.25 * 1400 / 3},
               1e-14);
  EXPECT_NEAR(value_of(g, r.y, at)[0], -2 / std::sqrt(3.5), 1e-14);
}

TEST_F(BatchNorm,
       gradients_from_the_rule_and_through_running_statistics_agree_with_central_differences) {
  const BatchNormResult r = batch_norm_train(x, weight, bias, running_mean, running_var);
  at["weight"] = floats({2}, {1.5, 0.5}), at["bias"] = floats({2}, {1, -1});
  const Tensor upstream = g.constant(floats({2, 2, 2}, {1, -2, 3, 0.5, 2, 1, -1, 4}));
  EXPECT_EQ(check_gradients(g, sum(r.y * upstream), {x, weight, bias}, at, 1e-6), "");
  EXPECT_EQ(check_gradients(g, sum(r.y * upstream) + sum(r.running_var) + sum(r.running_mean * 3.0),
                            {x, weight, bias}, at, 1e-6),
            "");
}

TEST_F(BatchNorm, running_statistics_carry_no_gradient) {
  const BatchNormResult r = batch_norm_train(x, weight, bias, running_mean, running_var);
  for (const std::vector<double>& d :
       gradients_of(g, sum(r.y) + sum(r.running_mean), {running_mean, running_var}, at))
    EXPECT_EQ(d, (std::vector<double>{0, 0}));
}

TEST_F(BatchNorm, evaluation_uses_the_running_statistics) {
  at["mean"] = floats({2}, {1, 2}), at["var"] = floats({2}, {4, 9}),
  at["weight"] = floats({2}, {2, 3}), at["bias"] = floats({2}, {0.5, 1});
  const Tensor y = batch_norm_eval(x, weight, bias, running_mean, running_var, {.eps = 0});
  expect_close(value_of(g, y, at), {0.5, 1.5, 9, 19, 2.5, 5.5, 29, 59}, 1e-14);
  EXPECT_EQ(check_gradients(g, sum(y * y), {x, weight, bias}, at, 1e-6), "");
}

TEST_F(BatchNorm, one_value_per_channel_is_a_type_error_in_training_only) {
  const auto train = [&](const Tensor& t) {
    return batch_norm_train(t, weight, bias, running_mean, running_var);
  };
  EXPECT_THAT(message_of<TypeError>([&] { train(g.input("one", {1, 2, 1, 1})); }),
              HasSubstr("expected more than 1 value per channel when training: x f32[1,2,1,1]"));
  EXPECT_THROW(train(g.input("none", {0, 2, 4})), TypeError);
  EXPECT_THROW(train(g.input("vector", {2})), TypeError);
  EXPECT_EQ(train(g.input("row", {1, 2, 1, 2})).y.rank(), 4);
  EXPECT_EQ(
      batch_norm_eval(g.input("single", {1, 2}), weight, bias, running_mean, running_var).rank(),
      2);
}

TEST_F(BatchNorm, momentum_out_of_range_is_a_type_error) {
  for (const double momentum : {-0.1, 1.5, static_cast<double>(NAN)})
    EXPECT_THROW(
        batch_norm_train(x, weight, bias, running_mean, running_var, {.momentum = momentum}),
        TypeError)
        << momentum;
}

}  // namespace
}  // namespace pantala::tests::norm_test
