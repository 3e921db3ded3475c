// Section 4 of the checklist: differentiation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numbers>

#include "ir/graph_data.h"
#include "pantala/autodiff.h"
#include "pantala/ops.h"
#include "pantala/text.h"
#include "support/errors.h"
#include "support/numbers.h"
#include "tools/fixtures/fixtures.h"

namespace pantala::tests::autograd_test {
namespace {

using ::testing::HasSubstr;

// The derivative of a function of one number.
double derivative(const std::function<Tensor(Tensor)>& f, double at) {
  Graph g;
  const Tensor x = g.parameter("x", {}, init::constant(at), f64);
  return gradients_of(g, f(x), {x})[0][0];
}

std::size_t count_nodes(const Graph& graph, std::string_view op) {
  std::size_t count = 0;
  for (const ir::Node& node : graph.data()->nodes()) count += node.op->name == op;
  return count;
}

TEST(Autograd, A01_returns_a_new_graph_and_one_gradient_per_entry) {
  Graph g;
  const Tensor a = g.parameter("a", {2, 3}), b = g.parameter("b", {3}, init::zeros(), f64),
               c = g.parameter("c", {});
  const Tensor loss = sum(a) + sum(cast(b, f32)) + c;
  const std::string before = to_text(g);
  const Gradients d = differentiate(g, loss, {b, a, c});
  EXPECT_EQ(to_text(g), before);
  ASSERT_EQ(d.gradients.size(), 3u);
  EXPECT_EQ(d.gradients[0].type(), b.type());
  EXPECT_EQ(d.gradients[1].type(), a.type());
  EXPECT_EQ(d.gradients[2].type(), c.type());
  EXPECT_NE(d.at(loss).graph(), loss.graph());
  EXPECT_EQ(d.at(loss).type(), loss.type());
  EXPECT_EQ(d.at(a), d.graph.leaf("a"));
}

TEST(Autograd, A02_wrt_parameters_inputs_and_intermediate_values) {
  Graph g;
  const Tensor p = g.parameter("p", {}, init::constant(3)), x = g.input("x", {});
  const Tensor mid = p * x, loss = mid * mid;
  const auto d = gradients_of(g, loss, {p, x, mid}, {{"x", Literal::scalar(2, f32)}});
  expect_close(d[0], {24});
  expect_close(d[1], {36});
  expect_close(d[2], {12});
}

TEST(Autograd, A03_the_loss_must_be_a_scalar_and_its_own_gradient_is_one) {
  Graph g;
  const std::string line = std::to_string(__LINE__ + 1);
  const Tensor p = g.parameter("p", {2, 3}), loss = sum(p);
  EXPECT_EQ(
      message_of<TypeError>([&] { differentiate(g, p, {p}); }),
      "differentiate: the loss must be a scalar, got f32[2,3] of parameter (autograd_test.cpp:" +
          line + ")");
  EXPECT_EQ(gradients_of(g, loss, {loss})[0], std::vector<double>{1});
}

TEST(Autograd, A04_an_unrelated_branch_adds_no_gradient_node) {
  Graph small, large;
  const auto build = [](Graph& g, bool branch) {
    const Tensor p = g.parameter("p", {4}), x = g.input("x", {4});
    const Tensor loss = sum(exp(p));
    if (branch) g.output("side", sum(sin(x) * cos(x)));
    return differentiate(g, loss, {p}).graph.size() - g.size();
  };
  EXPECT_EQ(build(small, false), build(large, true));
  // A branch that feeds the loss but does not descend from the parameter is not differentiated:
  // sin's gradient would need cos.
  Graph g;
  const Tensor p = g.parameter("p", {4}), x = g.input("x", {4});
  const Gradients d = differentiate(g, sum(p * sin(x)), {p});
  EXPECT_EQ(count_nodes(d.graph, "cos"), 0u);
}

TEST(Autograd, A05_several_readers_add_up) {
  EXPECT_DOUBLE_EQ(derivative([](Tensor x) { return x * x + x; }, 3), 7);
  EXPECT_DOUBLE_EQ(derivative([](Tensor y) { return add(y, y); }, 5), 2);
  EXPECT_DOUBLE_EQ(derivative([](Tensor y) { return mul(y, y); }, 5), 10);
}

TEST(Autograd, A06_a_parameter_that_the_loss_does_not_reach_gets_zeros) {
  Graph g;
  const Tensor p = g.parameter("p", {2}), q = g.parameter("q", {3, 2}, init::ones());
  const Gradients d = differentiate(g, sum(p), {q});
  EXPECT_EQ(d.gradients[0].type(), q.type());
  EXPECT_EQ(value_of(d.graph, d.gradients[0]), std::vector<double>(6, 0.0));
}

TEST(Autograd, A07_add_passes_the_gradient_to_both_sides_and_sums_a_broadcast_one) {
  Graph g;
  const Tensor x = g.parameter("x", {3, 4}), bias = g.parameter("bias", {4});
  const auto d = gradients_of(g, sum(x + bias), {x, bias});
  EXPECT_EQ(d[0], std::vector<double>(12, 1.0));
  EXPECT_EQ(d[1], std::vector<double>(4, 3.0));
}

TEST(Autograd, A08_the_gradient_of_a_sum_is_repeated_along_the_summed_axes) {
  for (const bool keep : {false, true})
    for (const std::int64_t axis : {0, 1, 2, -1}) {
      Graph g;
      const Tensor x = g.parameter("x", {2, 3, 4});
      const Tensor s = sum(x, {axis}, keep);
      std::vector<double> weights(static_cast<std::size_t>(s.numel()));
      for (std::size_t k = 0; k < weights.size(); ++k) weights[k] = static_cast<double>(k) + 1;
      const Tensor loss = sum(s * g.constant(floats(s.shape(), weights)));
      const std::vector<double> d = gradients_of(g, loss, {x})[0];
      const std::int64_t a = axis < 0 ? axis + 3 : axis;
      std::size_t at = 0;
      for (std::int64_t i = 0; i < 2; ++i)
        for (std::int64_t j = 0; j < 3; ++j)
          for (std::int64_t k = 0; k < 4; ++k, ++at)
            EXPECT_EQ(d[at], 1.0 + static_cast<double>(a == 0   ? j * 4 + k
                                                       : a == 1 ? i * 4 + k
                                                                : i * 3 + j))
                << "axis " << axis << " keep " << keep;
    }
}

TEST(Autograd, A09_ties_of_a_maximum_share_the_gradient) {
  Graph g;
  const Tensor x = g.parameter("x", {3}, init::from_data(floats({3}, {1, 3, 2}))),
               y = g.parameter("y", {3}, init::from_data(floats({3}, {3, 3, 1})));
  EXPECT_EQ(gradients_of(g, amax(x), {x})[0], (std::vector<double>{0, 1, 0}));
  EXPECT_EQ(gradients_of(g, amax(y), {y})[0], (std::vector<double>{0.5, 0.5, 0}));
}

TEST(Autograd, A10_derivatives_of_the_primitives) {
  EXPECT_NEAR(derivative([](Tensor x) { return log2(x); }, 4), 0.3606738, 1e-7);
  EXPECT_NEAR(derivative([](Tensor x) { return exp2(x); }, 3), 5.5451774, 1e-7);
  EXPECT_NEAR(derivative([](Tensor x) { return sin(x); }, 0.5), 0.8775826, 1e-7);
  EXPECT_DOUBLE_EQ(derivative([](Tensor x) { return sqrt(x); }, 4), 0.25);
  EXPECT_DOUBLE_EQ(derivative([](Tensor x) { return reciprocal(x); }, 2), -0.25);
  Graph g;
  const Tensor a = g.parameter("a", {}, init::constant(2)),
               b = g.parameter("b", {}, init::constant(5));
  const auto d = gradients_of(g, a * b, {a, b});
  EXPECT_EQ(d[0][0], 5);
  EXPECT_EQ(d[1][0], 2);
}

TEST(Autograd, A11_an_op_without_derivative_on_the_path_is_an_error_with_op_and_path) {
  Graph g;
  const Tensor w = g.parameter("w", {3}), x = g.input("x", {3});
  const Tensor by_mod = sum(mod(w * 2.0, x)), by_test = sum(cast(gt(w, x), f32) * x);
  EXPECT_THAT(message_of<TypeError>([&] { differentiate(g, by_mod, {w}); }),
              HasSubstr("has no derivative, but lies on the path w -> mul -> mod -> sum"));
  EXPECT_THAT(message_of<TypeError>([&] { differentiate(g, by_mod, {w}); }),
              ::testing::StartsWith("mod (autograd_test.cpp:"));
  EXPECT_THAT(message_of<TypeError>([&] { differentiate(g, by_test, {w}); }),
              HasSubstr("the path w -> gt -> cast -> mul -> sum"));
}

TEST(Autograd, A12_the_same_ops_off_that_path_are_no_error) {
  Graph g;
  const Tensor w = g.parameter("w", {3}, init::constant(2)), x = g.input("x", {3});
  const Tensor remainder = mod(x, 2.0), stopped = cast(gt(stop_gradient(w), x), f32);
  const auto d =
      gradients_of(g, sum(w * remainder) + sum(w * stopped), {w}, {{"x", floats({3}, {1, 5, 4})}});
  EXPECT_EQ(d[0], (std::vector<double>{2, 1, 0}));
}

TEST(Autograd, A13_mod_keeps_the_sign_of_the_dividend) {
  Graph g;
  const Tensor a = g.constant(floats({4}, {5, -5, 5, -5})),
               b = g.constant(floats({4}, {3, 3, -3, -3}));
  EXPECT_EQ(value_of(g, mod(a, b)), (std::vector<double>{2, -2, 2, -2}));
  const Tensor i = g.constant(ints({2}, {-7, 7})), j = g.constant(ints({2}, {3, -3}));
  EXPECT_EQ(value_of(g, mod(i, j)), (std::vector<double>{-1, 1}));
}

TEST(Autograd, A14_a_dot_product) {
  Graph g;
  const Tensor w = g.parameter("w", {2}, init::from_data(floats({2}, {2, 3}))),
               x = g.input("x", {2});
  const Tensor loss = matmul(w, x);
  const ref::Bindings at{{"x", floats({2}, {10, 5})}};
  EXPECT_EQ(value_of(g, loss, at), std::vector<double>{35});
  EXPECT_EQ(gradients_of(g, loss, {w}, at)[0], (std::vector<double>{10, 5}));
}

TEST(Autograd, A15_agrees_with_the_recorded_gradients_of_another_library) {
  const tools::Fixtures recorded(PANTALA_FIXTURES_DIR);
  for (const std::string_view prefix :
       {"ops/amax", "ops/matmul", "ops/layer_norm", "ops/softmax", "models/mlp"}) {
    int cases = 0;
    for (const std::string& name : recorded.names()) {
      if (!name.starts_with(prefix)) continue;
      EXPECT_TRUE(recorded.run(name, {"ref"}).passed()) << name;
      ++cases;
    }
    EXPECT_GT(cases, 0) << prefix;
  }
}

TEST(Autograd, A16_gradients_do_not_depend_on_the_order_of_writing) {
  const auto gradients = [](bool reversed) {
    Graph g;
    const auto leaf = [&](const char* name, double v) {
      return g.parameter(name, {2, 2}, init::constant(v), f64);
    };
    Tensor a, b;
    if (reversed)
      b = leaf("b", 0.3), a = leaf("a", 0.7);
    else
      a = leaf("a", 0.7), b = leaf("b", 0.3);
    Tensor s, t;
    if (reversed)
      t = exp(b) * a, s = sin(a) * b;
    else
      s = sin(a) * b, t = exp(b) * a;
    return gradients_of(g, reversed ? sum(t) + sum(s * t) + sum(s) : sum(s) + sum(s * t) + sum(t),
                        {a, b});
  };
  const auto first = gradients(false), second = gradients(true);
  for (std::size_t k = 0; k < 2; ++k) expect_close(first[k], second[k], 1e-14);
}

TEST(Autograd, A17_gradients_can_be_differentiated_again) {
  Graph g;
  const Tensor x = g.parameter("x", {}, init::constant(2), f64);
  const Gradients once = differentiate(g, x * x * x, {x});
  const Gradients twice = differentiate(once.graph, once.gradients[0], {once.at(x)});
  EXPECT_DOUBLE_EQ(value_of(twice.graph, twice.gradients[0])[0], 12);
  const Gradients thrice = differentiate(twice.graph, twice.gradients[0], {twice.at(once.at(x))});
  EXPECT_DOUBLE_EQ(value_of(thrice.graph, thrice.gradients[0])[0], 6);
}

}  // namespace
}  // namespace pantala::tests::autograd_test
