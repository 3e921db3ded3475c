// Differentiation of graphs: what is followed, what is not, and what stays of the old graph. The
// rules of the ops are checked elsewhere against central differences.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ir/graph_data.h"
#include "pantala/autodiff.h"
#include "pantala/interpreter.h"
#include "pantala/ops.h"
#include "pantala/text.h"
#include "support/errors.h"
#include "support/gradcheck.h"
#include "support/numbers.h"

namespace pantala {
namespace {

using ::testing::HasSubstr;
using tests::message_of;

class DifferentiatePaths : public ::testing::Test {
 protected:
  Graph g;
  Tensor p = g.parameter("p", {3}, init::from_data(Literal::floats({3}, {0.5, -1, 2})));
  static std::vector<double> value(const Gradients& d, std::size_t k = 0) {
    return ref::evaluate(d.graph, {d.gradients[k]}, {})[0].to_doubles();
  }
  static void expect_near(const std::vector<double>& a, const std::vector<double>& b) {
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t k = 0; k < a.size(); ++k) EXPECT_NEAR(a[k], b[k], 1e-12) << k;
  }
};

TEST_F(DifferentiatePaths, contributions_of_all_uses_add_up) {
  expect_near(value(differentiate(g, sum(p * p + p * 3.0 + p), {p})), {5, 2, 8});
}

TEST_F(DifferentiatePaths, what_the_loss_does_not_reach_gets_zeros) {
  const Tensor q = g.parameter("q", {2, 2}, init::ones(), f64);
  const Gradients d = differentiate(g, sum(p), {q, p});
  EXPECT_EQ(d.gradients[0].type(), q.type());
  EXPECT_EQ(value(d, 0), std::vector<double>(4, 0.0));
  EXPECT_EQ(value(d, 1), std::vector<double>(3, 1.0));
}

TEST_F(DifferentiatePaths, the_loss_with_respect_to_itself_is_the_seed) {
  const Tensor loss = sum(p);
  EXPECT_EQ(value(differentiate(g, loss, {loss})), std::vector<double>{1});
  const Tensor seed = g.constant(2.5);
  EXPECT_EQ(value(differentiate(g, loss, {p}, {.seed = seed})), std::vector<double>(3, 2.5));
}

TEST_F(DifferentiatePaths, intermediate_values_may_be_asked_for) {
  const Tensor h = p * 2.0, loss = sum(h * h);
  const Gradients d = differentiate(g, loss, {h, p});
  expect_near(value(d, 0), {2, -4, 8});
  expect_near(value(d, 1), {4, -8, 16});
}

TEST_F(DifferentiatePaths, keeps_nodes_outputs_and_updates) {
  g.output("y", p * 2.0);
  g.update(p, p + 1.0);
  const Gradients d = differentiate(g, sum(g.output("y")), {p});
  verify(d.graph);
  EXPECT_EQ(d.graph.outputs().size(), 1u);
  EXPECT_EQ(d.graph.updates().size(), 1u);
  EXPECT_EQ(d.at(g.output("y")), d.graph.output("y"));
  // The old graph is as it was: one sum, no gradient.
  EXPECT_EQ(to_text(g).find("sum"), to_text(g).rfind("sum"));
}

// In the new graph both inputs of the composite are the same value; only one of them is to be
// followed.
TEST_F(DifferentiatePaths, a_composite_of_a_value_and_its_stopped_self_follows_one) {
  const auto sigmoid_of = [](double x) { return 1 / (1 + std::exp(-x)); };
  std::vector<double> through_gate, through_up, through_both;
  for (const double x : {0.5, -1.0, 2.0}) {
    const double s = sigmoid_of(x), silu = x * s, slope = s * (1 + x * (1 - s));
    through_gate.push_back(slope * x);
    through_up.push_back(silu);
    through_both.push_back(slope * x + silu);
  }
  expect_near(value(differentiate(g, sum(swiglu(p, stop_gradient(p))), {p})), through_gate);
  expect_near(value(differentiate(g, sum(swiglu(stop_gradient(p), p)), {p})), through_up);
  expect_near(value(differentiate(g, sum(swiglu(p, p)), {p})), through_both);
}

// The definition of silu holds sigmoid(x), which here is also its upstream gradient's factor and a
// value of its own.
TEST_F(DifferentiatePaths, a_definition_may_meet_nodes_that_exist) {
  const Tensor loss = sum(silu(p) * sigmoid(p) + swiglu(p, sigmoid(p)));
  EXPECT_EQ(tests::check_gradients(g, loss, {p}, {{"p", Literal::floats({3}, {0.5, -1, 2})}}, 1e-8),
            "");
}

TEST_F(DifferentiatePaths, of_any_depth_and_through_gradients) {
  const Tensor loss = sum(pow_scalar(p, 4));
  const Gradients first = differentiate(g, loss, {p});
  Graph second_graph = first.graph;
  const Tensor total = sum(second_graph.value(first.gradients[0].id()));
  expect_near(value(differentiate(second_graph, total, {second_graph.leaf("p")})),
              {3, 12, 48});  // 12 p^2
}

TEST_F(DifferentiatePaths, ops_without_derivative_off_the_path_are_no_error) {
  const Tensor x = g.input("x", {3});
  const Tensor loss = sum(p * mod(x, 2.0) + stop_gradient(mod(p, 2.0)) * p);
  EXPECT_NO_THROW(differentiate(g, loss, {p}));
}

TEST_F(DifferentiatePaths, names_the_path_that_has_no_derivative) {
  const Tensor loss = sum(mod(p * 2.0, 0.7) * 3.0);
  EXPECT_THAT(message_of<TypeError>([&] { differentiate(g, loss, {p}); }),
              HasSubstr("has no derivative, but lies on the path p -> mul -> mod -> mul -> sum"));
  EXPECT_THAT(message_of<TypeError>([&] { differentiate(g, sum(cast(gt(p, 0.0), f32)), {p}); }),
              ::testing::AllOf(
                  ::testing::StartsWith("gt ("),
                  HasSubstr("has no derivative, but lies on the path p -> gt -> cast -> sum")));
}

TEST_F(DifferentiatePaths, checks_its_arguments) {
  Graph other;
  const Tensor foreign = other.parameter("p", {}), i = g.input("i", {}, i32), loss = sum(p);
  EXPECT_EQ(message_of<TypeError>([&] { differentiate(g, foreign, {p}); }),
            "differentiate: the loss is not a value of the graph");
  EXPECT_EQ(message_of<TypeError>([&] { differentiate(g, loss, {p, foreign}); }),
            "differentiate: wrt[1] is not a value of the graph");
  EXPECT_EQ(message_of<TypeError>([&] { differentiate(g, Tensor(), {p}); }),
            "differentiate: the loss is not a value of the graph");
  EXPECT_THAT(message_of<TypeError>([&] { differentiate(g, i, {p}); }),
              HasSubstr("differentiate: the loss must be a float value, got i32[] of input "
                        "(differentiate_paths_test.cpp:"));
  EXPECT_THAT(message_of<TypeError>([&] { differentiate(g, p * 2.0, {p}); }),
              HasSubstr("differentiate: the loss must be a scalar, got f32[3] of mul "
                        "(differentiate_paths_test.cpp:"));
  EXPECT_EQ(message_of<TypeError>(
                [&] { differentiate(g, loss, {p}, {.seed = g.constant(1.0, {}, f64)}); }),
            "differentiate: the seed must be f32[], got f64[]");
  const Gradients d = differentiate(g, loss, {p});
  EXPECT_EQ(message_of<TypeError>([&] { (void)d.at(exp(loss)); }),
            "this value is not of the graph that was differentiated");  // made after it
}

}  // namespace
}  // namespace pantala
