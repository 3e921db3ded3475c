// differentiate(): seeds, stop_gradient, forward reuse, and the bugs of earlier systems that must not come back.
#include <gtest/gtest.h>

#include "ir/graph_data.h"
#include "pantala/autodiff.h"
#include "pantala/ops.h"
#include "pantala/text.h"
#include "support/numbers.h"

namespace pantala::testing {
namespace {

std::size_t count_nodes(const Graph& graph, std::string_view op) {
  std::size_t count = 0;
  for (const ir::Node& node : graph.data()->nodes()) count += node.op->name == op;
  return count;
}

TEST(Differentiate, a_seed_scales_the_gradients) {
  Graph g;
  const Tensor x = g.parameter("x", {2}, init::constant(3)), weight = g.input("weight", {});
  const Gradients d = differentiate(g, sum(square(x)), {x}, {.seed = weight, .keep_stop_gradients = false});
  EXPECT_EQ(value_of(d.graph, d.gradients[0], {{"weight", Literal::scalar(5, f32)}}), (std::vector<double>{30, 30}));
}

TEST(Differentiate, stop_gradient_is_opaque_before_and_gone_after) {
  Graph g;
  const Tensor x = g.parameter("x", {}, init::constant(3), f64);
  const Tensor loss = x * stop_gradient(x);
  const Gradients d = differentiate(g, loss, {x});
  EXPECT_EQ(value_of(d.graph, d.gradients[0])[0], 3);
  EXPECT_EQ(count_nodes(d.graph, "stop_gradient"), 0u);
}

TEST(Differentiate, kept_stop_gradients_stop_the_second_derivative_too) {
  Graph g;
  const Tensor x = g.parameter("x", {}, init::constant(3), f64);
  const Gradients once = differentiate(g, x * x * stop_gradient(x), {x}, {.seed = {}, .keep_stop_gradients = true});
  const Gradients twice = differentiate(once.graph, once.gradients[0], {once.at(x)});
  EXPECT_EQ(value_of(twice.graph, twice.gradients[0])[0], 6);  // 2 x, not 6 x
}

TEST(Differentiate, forward_results_are_reused) {
  Graph g;
  const Tensor x = g.parameter("x", {4});
  const Gradients d = differentiate(g, sum(exp(x)), {x});
  EXPECT_EQ(count_nodes(d.graph, "exp"), 1u);
}

TEST(Differentiate, outputs_and_updates_stay) {
  Graph g;
  const Tensor x = g.parameter("x", {2}), s = g.state("s", {2});
  g.output("y", x * 2.0);
  g.update(s, x + s);
  const Gradients d = differentiate(g, sum(x), {x});
  EXPECT_EQ(d.graph.outputs().size(), 1u);
  EXPECT_EQ(d.graph.updates().size(), 1u);
}

TEST(Differentiate, a_loss_of_another_graph_is_an_error) {
  Graph g, h;
  const Tensor x = g.parameter("x", {}), y = h.parameter("y", {});
  EXPECT_EQ(message_of<TypeError>([&] { differentiate(g, y, {x}); }), "differentiate: the loss is not a value of the graph");
  EXPECT_EQ(message_of<TypeError>([&] { differentiate(g, x, {y}); }), "differentiate: wrt[0] is not a value of the graph");
}

TEST(Differentiate, no_gradient_flows_into_conditions_and_indices) {
  Graph g;
  const Tensor x = g.parameter("x", {3}, init::from_data(floats({3}, {-1, 2, 3})));
  EXPECT_EQ(gradients_of(g, sum(where(gt(x, 0.0), x * 3.0, x)), {x})[0], (std::vector<double>{1, 3, 3}));
}

// --- bugs of earlier systems -------------------------------------------------------------------------------------------
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
  const Tensor x = g.constant(0, {3, 3}), bias = g.parameter("bias", {3}, init::from_data(floats({3}, {1, 2, 3})));
  EXPECT_EQ(value_of(g, x + bias), (std::vector<double>{1, 2, 3, 1, 2, 3, 1, 2, 3}));
  const Tensor weights = g.constant(floats({3, 3}, {1, 0, 0, 10, 0, 0, 100, 0, 0}));
  EXPECT_EQ(gradients_of(g, sum((x + bias) * weights), {bias})[0], (std::vector<double>{111, 0, 0}));
}

TEST(EarlierSystems, gradients_pass_through_slice_and_pad) {
  Graph g;
  const Tensor x = g.parameter("x", {5});
  EXPECT_EQ(gradients_of(g, sum(slice(x, {1}, {5}, {2}) * 2.0), {x})[0], (std::vector<double>{0, 2, 0, 2, 0}));
  EXPECT_EQ(gradients_of(g, sum(pad(x, {2}, {1}, 9.0) * 3.0), {x})[0], (std::vector<double>(5, 3.0)));
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
}  // namespace pantala::testing
