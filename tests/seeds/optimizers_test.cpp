// Section 6 of the checklist: SGD and Adam as graph extensions. Everything runs on the interpreter.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "pantala/autodiff.h"
#include "pantala/error.h"
#include "pantala/interpreter.h"
#include "pantala/ops.h"
#include "pantala/optim.h"
#include "pantala/text.h"
#include "support/errors.h"

namespace pantala::optimizers_test {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;
using tests::message_of;

Literal values(Shape shape, std::vector<double> numbers) {
  return Literal::floats(std::move(shape), std::move(numbers), f64);
}
std::vector<double> read(const ref::Session& session, std::string_view name) {
  return session.value(name).to_doubles();
}

// One weight, one gradient that is an input.
struct OneWeight {
  Graph graph;
  Tensor weight, gradient;
  explicit OneWeight(double first, Shape shape = {}) {
    weight = graph.parameter("w", shape, init::constant(first), f64);
    gradient = graph.input("g", shape, f64);
  }
};

// (x - 3)^2, differentiated, with Adam on it.
ref::Session parabola(double rate) {
  Graph forward;
  const Tensor x = forward.parameter("x", {}, init::zeros(), f64);
  Gradients d = differentiate(forward, square(x - 3.0), {x});
  optim::adam_on_graph(d.graph, {d.at(x)}, d.gradients, rate);
  return ref::Session(d.graph);
}
double after(ref::Session& session, int steps) {
  for (int k = 0; k < steps; ++k) session.step();
  return session.value("x").at(0);
}

TEST(Optimizers, O01_sgd_is_weight_minus_rate_times_gradient) {
  OneWeight m(1);
  const optim::SgdOnGraph sgd = optim::sgd_on_graph(m.graph, {m.weight}, {m.gradient}, 0.1);
  ref::Session session(m.graph);
  session.set_input("g", values({}, {2}));
  session.step();
  EXPECT_NEAR(session.value("w").at(0), 0.8, 1e-15);
}

TEST(Optimizers, O02_sgd_on_graph_appends_and_keeps_what_was_there) {
  OneWeight m(1, {2});
  m.graph.output("doubled", m.weight * 2.0);
  const std::string before = to_text(m.graph);
  const std::size_t nodes = m.graph.size();
  const auto [new_weights, learning_rate] = optim::sgd_on_graph(m.graph, {m.weight}, {m.gradient});
  ASSERT_EQ(new_weights.size(), 1u);
  EXPECT_EQ(new_weights[0].type, m.weight.type());
  EXPECT_EQ(learning_rate.in(m.graph), m.graph.leaf("optim.lr"));
  EXPECT_GT(m.graph.size(), nodes);
  // The old text without its closing lines is the beginning of the new one.
  EXPECT_THAT(to_text(m.graph), testing::StartsWith(before.substr(0, before.find("  output"))));
  ASSERT_EQ(m.graph.outputs().size(), 1u);
  EXPECT_EQ(m.graph.output("doubled").type(), m.weight.type());
  verify(m.graph);
}

TEST(Optimizers, O03_sgd_on_graph_starts_at_3e_4) {
  OneWeight m(1);
  optim::sgd_on_graph(m.graph, {m.weight}, {m.gradient});
  ref::Session session(m.graph);
  EXPECT_EQ(session.scalar("optim.lr"), 3e-4);
  session.set_input("g", values({}, {1}));
  session.step();
  EXPECT_NEAR(session.value("w").at(0), 0.9997, 1e-15);
}

TEST(Optimizers, O04_isolated_sgd_has_a_graph_of_its_own) {
  Graph user;
  const std::vector<Tensor> gradients{user.input("a", {2, 3}), user.input("b", {4})};
  const std::size_t nodes = user.size();
  const auto [old_weights, inputs, new_weights, graph, learning_rate] = optim::sgd(gradients);
  EXPECT_EQ(user.size(), nodes);
  ASSERT_EQ(old_weights.size(), 2u);
  ASSERT_EQ(inputs.size(), 2u);
  ASSERT_EQ(new_weights.size(), 2u);
  for (const auto* list : {&old_weights, &inputs, &new_weights}) {
    EXPECT_EQ((*list)[0].type, (Type{f32, {2, 3}}));
    EXPECT_EQ((*list)[1].type, (Type{f32, {4}}));
  }
  ASSERT_EQ(graph.leaves(LeafKind::scalar).size(), 1u);
  EXPECT_EQ(learning_rate.in(graph), graph.leaves(LeafKind::scalar)[0].value);
  EXPECT_EQ(learning_rate.type, (Type{f64, {}}));
  ref::Session session(graph);
  session.set_input("gradient.0", Literal::floats({2, 3}, {1, 1, 1, 1, 1, 1}));
  session.set_input("gradient.1", Literal::floats({4}, {1, 2, 3, 4}));
  session.step();
  EXPECT_DOUBLE_EQ(session.output("new_weight.1").at(3), -12e-4);
  EXPECT_DOUBLE_EQ(session.value("weight.1").at(3), -12e-4);
}

TEST(Optimizers, O05_lists_that_do_not_fit_name_the_entry) {
  Graph g;
  const Tensor a = g.parameter("a", {2}), b = g.parameter("b", {3}), ga = g.input("ga", {2}),
               gb = g.input("gb", {4});
  EXPECT_THAT(message_of<TypeError>([&] { optim::sgd_on_graph(g, {a, b}, {ga}); }),
              HasSubstr("2 weights but 1 gradients; entry 1 has no gradient"));
  EXPECT_THAT(message_of<TypeError>([&] { optim::adam_on_graph(g, {a}, {ga, gb}); }),
              HasSubstr("1 weights but 2 gradients; entry 1 has no weight"));
  EXPECT_THAT(message_of<TypeError>([&] { optim::sgd_on_graph(g, {a, b}, {ga, gb}); }),
              HasSubstr("entry 1 ('b'): the weight is f32[3], its gradient f32[4]"));
  EXPECT_THAT(message_of<TypeError>([&] { optim::adam_on_graph(g, {a, b}, {ga, gb}); }),
              HasSubstr("entry 1 ('b'): the weight is f32[3], its gradient f32[4]"));
  EXPECT_EQ(g.size(), 4u);
}

TEST(Optimizers, O06_rate_betas_and_epsilon_are_scalars_with_setters) {
  OneWeight m(1);
  const optim::AdamOnGraph adam = optim::adam_on_graph(m.graph, {m.weight}, {m.gradient});
  ref::Session session(m.graph);
  const std::string text = to_text(session.graph());
  session.set_input("g", values({}, {2}));
  session.step();
  const double w1 = session.value("w").at(0), m1 = read(session, "optim.m.w")[0],
               v1 = read(session, "optim.v.w")[0];
  adam.set_learning_rate(session, 0.5);
  adam.set_beta1(session, 0.25);
  adam.set_beta2(session, 0.75);
  adam.set_epsilon(session, 0.125);
  session.step();
  const double m2 = 0.25 * m1 + 0.75 * 2, v2 = 0.75 * v1 + 0.25 * 4;
  EXPECT_NEAR(session.value("w").at(0),
              w1 - 0.5 * (m2 / (1 - 0.0625)) / (std::sqrt(v2 / (1 - 0.5625)) + 0.125), 1e-14);
  EXPECT_EQ(to_text(session.graph()), text);
  EXPECT_THROW(adam.set_beta1(session, 1), TypeError);
  EXPECT_THROW(adam.set_learning_rate(session, -1), TypeError);
}

TEST(Optimizers, O07_adam_defaults) {
  const optim::Optimizer adam = optim::adam();
  EXPECT_EQ(adam.lr(), 1e-3);
  EXPECT_EQ(adam.value("beta1"), 0.9);
  EXPECT_EQ(adam.value("beta2"), 0.999);
  EXPECT_EQ(adam.value("eps"), 1e-8);
  OneWeight m(1);
  optim::adam_on_graph(m.graph, {m.weight}, {m.gradient});
  const ref::Session session(m.graph);
  EXPECT_EQ(session.scalar("optim.lr"), 1e-3);
  EXPECT_EQ(session.scalar("optim.beta1"), 0.9);
  EXPECT_EQ(session.scalar("optim.beta2"), 0.999);
  EXPECT_EQ(session.scalar("optim.eps"), 1e-8);
}

TEST(Optimizers, O08_adam_formula) {
  OneWeight m(0, {3});
  optim::adam_on_graph(m.graph, {m.weight}, {m.gradient}, 0.01);
  ref::Session session(m.graph);
  std::vector<double> w{1, -2, 0.5}, first(3), second(3);
  session.set_value("w", values({3}, w));
  for (int t = 1; t <= 5; ++t) {
    const std::vector<double> g{0.3 * t, -1.0 / t, 0.1 * t * t};
    session.set_input("g", values({3}, g));
    session.step();
    for (std::size_t k = 0; k < 3; ++k) {
      first[k] = 0.9 * first[k] + 0.1 * g[k];
      second[k] = 0.999 * second[k] + 0.001 * g[k] * g[k];
      w[k] -= 0.01 * (first[k] / (1 - std::pow(0.9, t))) /
              (std::sqrt(second[k] / (1 - std::pow(0.999, t))) + 1e-8);
      EXPECT_NEAR(read(session, "w")[k], w[k], 1e-12);
      EXPECT_NEAR(read(session, "optim.m.w")[k], first[k], 1e-14);
      EXPECT_NEAR(read(session, "optim.v.w")[k], second[k], 1e-14);
    }
  }
}

TEST(Optimizers, O09_moments_start_at_zero_and_one_counter_counts) {
  Graph g;
  const Tensor a = g.parameter("a", {2, 3}), b = g.parameter("b", {4}), ga = g.input("ga", {2, 3}),
               gb = g.input("gb", {4});
  optim::adam_on_graph(g, {a, b}, {ga, gb});
  ref::Session session(g);
  for (const char* name : {"optim.m.a", "optim.v.a"})
    EXPECT_EQ(session.value(name), Literal(Type{f32, {2, 3}}));
  for (const char* name : {"optim.m.b", "optim.v.b"})
    EXPECT_EQ(session.value(name), Literal(Type{f32, {4}}));
  int counters = 0;
  for (const Leaf& leaf : g.leaves(LeafKind::state)) counters += leaf.value.dtype() == i64;
  EXPECT_EQ(counters, 1);
  // With t = 1 the corrections undo the decays: the first step has length lr whatever the gradient
  // is.
  session.set_input("ga", Literal::floats({2, 3}, {1, -2, 3, -4, 5, -6}));
  session.set_input("gb", Literal::floats({4}, {0.5, -0.5, 8, -8}));
  const std::vector<double> before = read(session, "a");
  session.step();
  EXPECT_EQ(session.value("optim.step"), Literal::integer(1));
  EXPECT_NEAR(read(session, "a")[1] - before[1], 1e-3, 1e-10);
  EXPECT_NEAR(read(session, "a")[4] - before[4], -1e-3, 1e-10);
}

TEST(Optimizers, O10_parabola) {
  ref::Session slow = parabola(0.01);
  EXPECT_NEAR(after(slow, 1), 0.0100000, 5e-8);
  EXPECT_NEAR(after(slow, 1), 0.0199991, 5e-8);
  EXPECT_NEAR(after(slow, 1), 0.0299968, 5e-8);
  EXPECT_NEAR(after(slow, 97), 0.9375536, 5e-8);
  EXPECT_NEAR(after(slow, 900), 2.9991084, 5e-8);
  ref::Session fast = parabola(0.1);
  EXPECT_NEAR(after(fast, 200), 3.0000530, 5e-8);
}

TEST(Optimizers, O11_a_step_advances_weights_moments_and_counter) {
  ref::Session session = parabola(0.01);
  for (int t = 1; t <= 3; ++t) {
    const double x = session.value("x").at(0), m = read(session, "optim.m.x")[0],
                 v = read(session, "optim.v.x")[0];
    session.step();
    EXPECT_NE(session.value("x").at(0), x);
    EXPECT_NE(read(session, "optim.m.x")[0], m);
    EXPECT_NE(read(session, "optim.v.x")[0], v);
    EXPECT_EQ(session.value("optim.step").at(0), t);
  }
}

TEST(Optimizers, O12_new_weights_in_the_order_of_the_parameters) {
  Graph g;
  const Tensor b = g.parameter("b", {2}, init::constant(5), f64),
               a = g.parameter("a", {}, init::constant(1), f64);
  const Tensor ga = g.input("ga", {}, f64), gb = g.input("gb", {2}, f64);
  const optim::AdamOnGraph adam = optim::adam_on_graph(g, {a, b}, {ga, gb}, 0.5);
  ASSERT_EQ(adam.new_weights().size(), 2u);
  EXPECT_EQ(adam.new_weights()[0].type, a.type());
  EXPECT_EQ(adam.new_weights()[1].type, b.type());
  ref::Session session(g);
  session.observe(
      {adam.new_weights()[0].in(session.graph()), adam.new_weights()[1].in(session.graph())});
  session.set_input("ga", values({}, {1}));
  session.set_input("gb", values({2}, {1, -1}));
  session.step();
  EXPECT_THAT(session.observed(adam.new_weights()[0].in(session.graph())).to_doubles(),
              ElementsAre(DoubleNear(0.5, 1e-7)));
  EXPECT_THAT(session.observed(adam.new_weights()[1].in(session.graph())).to_doubles(),
              ElementsAre(DoubleNear(4.5, 1e-7), DoubleNear(5.5, 1e-7)));
  EXPECT_EQ(session.observed(adam.new_weights()[1].in(session.graph())), session.value("b"));
}

TEST(Optimizers, O13_an_optimizer_works_after_its_graph_was_moved) {
  static_assert(std::is_same_v<decltype(optim::ValueRef::id), ValueId> &&
                std::is_same_v<decltype(optim::ValueRef::type), Type>);
  std::optional<optim::AdamOnGraph> adam;
  Graph moved;
  {
    OneWeight m(1);
    adam = optim::adam_on_graph(m.graph, {m.weight}, {m.gradient});
    moved = std::move(m.graph);
  }
  ref::Session session(std::move(moved));
  adam->set_learning_rate(session, 0.25);
  const Tensor fresh = adam->new_weights()[0].in(session.graph());
  session.observe({fresh});
  session.set_input("g", values({}, {-3}));
  session.step();
  EXPECT_NEAR(session.observed(fresh).at(0), 1.25, 1e-8);
  EXPECT_EQ(session.observed(fresh), session.value("w"));
}

TEST(Optimizers, O14_rate_zero_and_zero_gradients_leave_the_weights) {
  OneWeight m(0, {2});
  const optim::AdamOnGraph adam = optim::adam_on_graph(m.graph, {m.weight}, {m.gradient});
  const Literal start = values({2}, {0.1, -7.3});
  ref::Session still(m.graph);
  still.set_value("w", start);
  adam.set_learning_rate(still, 0);
  still.set_input("g", values({2}, {1.7, -0.3}));
  for (int t = 1; t <= 3; ++t) {
    const Literal first = still.value("optim.m.w"), second = still.value("optim.v.w");
    still.step();
    EXPECT_EQ(still.value("w"), start);
    EXPECT_NE(still.value("optim.m.w"), first);
    EXPECT_NE(still.value("optim.v.w"), second);
    EXPECT_EQ(still.value("optim.step").at(0), t);
  }
  ref::Session flat(m.graph);
  flat.set_value("w", start);
  flat.set_input("g", values({2}, {0, 0}));
  flat.step();
  EXPECT_EQ(flat.value("w"), start);
}

}  // namespace
}  // namespace pantala::optimizers_test
