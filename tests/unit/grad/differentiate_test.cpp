// differentiate(): seeds, stop_gradient, forward reuse, what stays and what is an error.
#include <gtest/gtest.h>

#include "ir/graph_data.h"
#include "pantala/autodiff.h"
#include "pantala/ops.h"
#include "pantala/text.h"
#include "support/errors.h"
#include "support/numbers.h"

namespace pantala::tests {
namespace {

std::size_t count_nodes(const Graph& graph, std::string_view op) {
  std::size_t count = 0;
  for (const ir::Node& node : graph.data()->nodes()) count += node.op->name == op;
  return count;
}

TEST(Differentiate, a_seed_scales_the_gradients) {
  Graph g;
  const Tensor x = g.parameter("x", {2}, init::constant(3)), weight = g.input("weight", {});
  const Gradients d =
      differentiate(g, sum(square(x)), {x}, {.seed = weight, .keep_stop_gradients = false});
  EXPECT_EQ(value_of(d.graph, d.gradients[0], {{"weight", Literal::scalar(5, f32)}}),
            (std::vector<double>{30, 30}));
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
  const Gradients once =
      differentiate(g, x * x * stop_gradient(x), {x}, {.seed = {}, .keep_stop_gradients = true});
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
  EXPECT_EQ(message_of<TypeError>([&] { differentiate(g, y, {x}); }),
            "differentiate: the loss is not a value of the graph");
  EXPECT_EQ(message_of<TypeError>([&] { differentiate(g, x, {y}); }),
            "differentiate: wrt[0] is not a value of the graph");
}

TEST(Differentiate, no_gradient_flows_into_conditions_and_indices) {
  Graph g;
  const Tensor x = g.parameter("x", {3}, init::from_data(floats({3}, {-1, 2, 3})));
  EXPECT_EQ(gradients_of(g, sum(where(gt(x, 0.0), x * 3.0, x)), {x})[0],
            (std::vector<double>{1, 3, 3}));
}

}  // namespace
}  // namespace pantala::tests
