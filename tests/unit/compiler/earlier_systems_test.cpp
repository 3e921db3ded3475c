// The mistakes of earlier systems, one named test each: none of them may come back.
#include <gtest/gtest.h>

#include <cmath>

#include "pantala/autodiff.h"
#include "pantala/nn.h"
#include "pantala/ops.h"
#include "pantala/optim.h"
#include "pantala/training_step.h"
#include "support/gradcheck.h"
#include "support/numbers.h"

namespace pantala::tests {
namespace {

TEST(EarlierSystems, the_gradient_of_max_pool_goes_to_the_arg_max) {
  Graph g;
  const Tensor x = g.parameter("x", {1, 1, 2, 4},
                               init::from_data(floats({1, 1, 2, 4}, {1, 5, 2, 2, 3, 4, 2, 1})));
  const Tensor upstream = g.constant(floats({1, 1, 1, 2}, {10, 20}));
  EXPECT_EQ(gradients_of(g, sum(max_pool2d(x, {2}) * upstream), {x})[0],
            (std::vector<double>{0, 10, 20, 0, 0, 0, 0, 0}));
}

TEST(EarlierSystems, a_1x1_convolution_keeps_the_order_of_channels) {
  Graph g;
  const Tensor x = g.constant(floats({1, 2, 1, 2}, {1, 2, 10, 20})),
               weight = g.constant(floats({3, 2, 1, 1}, {1, 0, 0, 1, 1, 1}));
  EXPECT_EQ(value_of(g, conv2d(x, weight)), (std::vector<double>{1, 2, 10, 20, 11, 22}));
}

TEST(EarlierSystems, cross_entropy_in_mid_graph_with_a_batch) {
  Graph g;
  const Tensor logits = g.parameter("logits", {3, 4}, init::normal(), f64),
               labels = g.input("labels", {3}, i64);
  const Tensor loss = square(cross_entropy(logits * 1.5, labels)) * 0.7;
  EXPECT_EQ(check_gradients(g, loss, {logits}, {{"labels", ints({3}, {2, 0, 3})}}, 1e-6), "");
}

TEST(EarlierSystems, bce_of_any_size_and_for_logits_of_1e4) {
  for (const std::int64_t n : {1, 7, 1025}) {
    Graph g;
    const Tensor x = g.parameter("x", {n}, init::constant(-1e4)), target = g.constant(1, {n});
    EXPECT_DOUBLE_EQ(value_of(g, bce_with_logits(x, target))[0], 1e4);
    const std::vector<double> gradient = gradients_of(g, bce_with_logits(x, target), {x})[0];
    EXPECT_EQ(gradient.size(), static_cast<std::size_t>(n));
    for (const double d : gradient) EXPECT_DOUBLE_EQ(d, -1.0 / static_cast<double>(n));
  }
}

TEST(EarlierSystems, kl_with_zeros_in_the_target_is_no_nan) {
  Graph g;
  const Tensor logits = g.parameter("logits", {1, 3}, init::from_data(floats({1, 3}, {1, 2, 3}))),
               target = g.constant(floats({1, 3}, {0, 0, 1}));
  EXPECT_NEAR(value_of(g, kl_div_with_logits(logits, target))[0], 0.4076060, 1e-7);
  // softmax(logits) - target
  expect_close(gradients_of(g, kl_div_with_logits(logits, target), {logits})[0],
               {0.0900306, 0.2447285, -0.3347591});
}

TEST(EarlierSystems, the_gradient_of_rmse_at_zero_error_is_zero) {
  Graph g;
  const Tensor x = g.parameter("x", {3}, init::ones());
  EXPECT_EQ(gradients_of(g, rmse_loss(x, g.constant(1, {3})), {x})[0],
            (std::vector<double>{0, 0, 0}));
}

TEST(EarlierSystems, attention_gradients_for_other_head_sizes_than_64) {
  for (const std::int64_t size : {1, 8, 24, 80}) {
    Graph g;
    const auto leaf = [&](const char* name) {
      return g.parameter(name, {1, 2, 3, size}, init::normal(0, 0.5), f64);
    };
    const Tensor q = leaf("q"), k = leaf("k"), v = leaf("v");
    EXPECT_EQ(
        check_gradients(g, sum(square(attention(q, k, v, {.causal = true}))), {q, k, v}, {}, 1e-6),
        "")
        << "head size " << size;
  }
}

TEST(EarlierSystems, parameters_read_after_training_are_the_trained_ones) {
  Graph g;
  const Tensor w = g.parameter("w", {2}, init::from_data(floats({2}, {1, -2})));
  ref::Session session(make_training_step(g, sum(w * w), optim::sgd(0.25)).graph);
  session.step();
  EXPECT_EQ(session.value("w").to_doubles(), (std::vector<double>{0.5, -1}));
  session.step();
  EXPECT_EQ(session.value("w").to_doubles(), (std::vector<double>{0.25, -0.5}));
}

TEST(EarlierSystems, add_and_mul_of_one_value_with_itself) {
  Graph g;
  const Tensor y = g.parameter("y", {2}, init::from_data(floats({2}, {2, 5})));
  EXPECT_EQ(gradients_of(g, sum(add(y, y)), {y})[0], (std::vector<double>{2, 2}));
  EXPECT_EQ(gradients_of(g, sum(mul(y, y)), {y})[0], (std::vector<double>{4, 10}));
  EXPECT_EQ(gradients_of(g, sum(swiglu(y, y)), {y})[0].size(), 2u);
}

TEST(EarlierSystems, a_composite_of_one_value_with_itself) {
  Graph g;
  const Tensor y = g.parameter("y", {}, init::constant(0.7), f64);
  // swiglu(y, y) = silu(y) y: its definition sees one value twice.
  const double s = 1 / (1 + std::exp(-0.7)), expected = 2 * 0.7 * s + 0.7 * 0.7 * s * (1 - s);
  EXPECT_NEAR(gradients_of(g, swiglu(y, y), {y})[0][0], expected, 1e-14);
}

TEST(EarlierSystems, a_bias_of_n_on_n_by_n_goes_along_the_last_axis) {
  Graph g;
  const Tensor x = g.constant(0, {3, 3}),
               bias = g.parameter("bias", {3}, init::from_data(floats({3}, {1, 2, 3})));
  EXPECT_EQ(value_of(g, x + bias), (std::vector<double>{1, 2, 3, 1, 2, 3, 1, 2, 3}));
  const Tensor weights = g.constant(floats({3, 3}, {1, 0, 0, 10, 0, 0, 100, 0, 0}));
  EXPECT_EQ(gradients_of(g, sum((x + bias) * weights), {bias})[0],
            (std::vector<double>{111, 0, 0}));
}

TEST(EarlierSystems, gradients_pass_through_slice_and_pad) {
  Graph g;
  const Tensor x = g.parameter("x", {5});
  EXPECT_EQ(gradients_of(g, sum(slice(x, {1}, {5}, {2}) * 2.0), {x})[0],
            (std::vector<double>{0, 2, 0, 2, 0}));
  EXPECT_EQ(gradients_of(g, sum(pad(x, {2}, {1}, 9.0) * 3.0), {x})[0],
            (std::vector<double>(5, 3.0)));
}

TEST(EarlierSystems, the_gradient_of_gelu_is_that_of_the_gelu_that_ran) {
  Graph g;
  const Tensor x = g.parameter("x", {}, init::constant(2), f64);
  EXPECT_NEAR(gradients_of(g, gelu(x), {x})[0][0], 1.085231801078, 1e-11);
  EXPECT_NEAR(gradients_of(g, gelu_tanh(x), {x})[0][0], 1.086099256624, 1e-11);
}

TEST(EarlierSystems, an_intermediate_value_that_is_also_an_output_stays_readable) {
  Graph g;
  const Tensor x = g.parameter("x", {2}, init::constant(1)), mid = x * 2.0;
  g.output("mid", mid);
  const Gradients d = differentiate(g, sum(mid * mid), {x});
  EXPECT_EQ(value_of(d.graph, d.graph.output("mid")), (std::vector<double>{2, 2}));
}

}  // namespace
}  // namespace pantala::tests
