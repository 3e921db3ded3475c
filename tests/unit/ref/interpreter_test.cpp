// The interpreter and its session: bindings, first values, steps.
#include "pantala/interpreter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "pantala/error.h"
#include "pantala/ops.h"
#include "support/errors.h"
#include "support/numbers.h"

namespace pantala::ref {
namespace {

using pantala::tests::message_of;
using ::testing::HasSubstr;
using tests::message_of;

TEST(Evaluate, binds_inputs_and_gives_first_values_to_the_rest) {
  Graph g;
  const Tensor x = g.input("x", {2}), p = g.parameter("p", {2}, init::constant(3)),
               h = g.scalar("h", 0.5);
  const Tensor y = x * p * cast(h, f32);
  EXPECT_EQ(evaluate(g, {y}, {{"x", Literal::floats({2}, {1, 2})}})[0],
            Literal::floats({2}, {1.5, 3}));
  EXPECT_EQ(evaluate(g, {y},
                     {{"x", Literal::floats({2}, {1, 2})},
                      {"h", Literal::scalar(2)},
                      {"p", Literal::floats({2}, {1, 10})}})[0],
            Literal::floats({2}, {2, 40}));
}

TEST(Evaluate, asks_only_for_what_is_needed) {
  Graph g;
  const Tensor x = g.input("x", {2});
  g.input("unused", {100});
  EXPECT_EQ(evaluate(g, {x + 1.0, x}, {{"x", Literal::floats({2}, {1, 2})}})[0],
            Literal::floats({2}, {2, 3}));
  EXPECT_TRUE(evaluate(g, {}, {}).empty());
}

TEST(Evaluate, seeds_give_first_values) {
  Graph g;
  const Tensor p = g.parameter("p", {8}, init::normal());
  EXPECT_EQ(evaluate(g, {p}, {}, 1)[0], evaluate(g, {p}, {}, 1)[0]);
  EXPECT_FALSE(evaluate(g, {p}, {}, 1)[0] == evaluate(g, {p}, {}, 2)[0]);
}

TEST(Evaluate, says_what_is_wrong) {
  Graph g, other;
  const Tensor x = g.input("x", {2}), foreign = other.input("x", {3});
  EXPECT_EQ(message_of<TypeError>([&] { evaluate(g, {x}, {}); }), "input 'x' f32[2] has no value");
  EXPECT_EQ(
      message_of<TypeError>([&] { evaluate(g, {x}, {{"x", Literal::floats({3}, {1, 2, 3})}}); }),
      "'x' is f32[2], but f32[3] was given");
  EXPECT_EQ(
      message_of<TypeError>([&] { evaluate(g, {x}, {{"x", Literal::floats({2}, {1, 2}, f64)}}); }),
      "'x' is f32[2], but f64[2] was given");
  EXPECT_EQ(message_of<TypeError>([&] { evaluate(g, {x}, {{"xx", Literal()}}); }),
            "the graph has no leaf named 'xx'; did you mean 'x'?");
  EXPECT_EQ(message_of<TypeError>([&] { evaluate(g, {foreign}, {}); }),
            "%0 f32[3] is not a value of this graph");
  EXPECT_EQ(message_of<TypeError>([&] { evaluate(g, {exp(foreign)}, {}); }),
            "%1 f32[3] is not a value of this graph");
  EXPECT_EQ(message_of<TypeError>([&] { evaluate(g, {Tensor()}, {}); }),
            "an empty handle is not a value of this graph");
}

TEST(Evaluate, takes_handles_of_the_graph_that_it_was_copied_from) {
  Graph g;
  const Tensor x = g.input("x", {2}), y = x + 1.0;
  const Graph copy = g;
  EXPECT_EQ(evaluate(copy, {y}, {{"x", Literal::floats({2}, {1, 2})}})[0],
            Literal::floats({2}, {2, 3}));
}

TEST(Evaluate, integers_wrap_to_their_type) {
  Graph g;
  const Tensor a = g.constant(Literal::ints({2}, {200, 100}, u8)),
               b = g.constant(Literal::ints({1}, {INT32_MAX}, i32)),
               c = g.constant(Literal::ints({1}, {INT64_MAX}));
  EXPECT_EQ(evaluate(g, {a + a}, {})[0], Literal::ints({2}, {144, 200}, u8));
  EXPECT_EQ(evaluate(g, {b + 1}, {})[0], Literal::ints({1}, {INT32_MIN}, i32));
  EXPECT_EQ(evaluate(g, {c * c}, {})[0], Literal::ints({1}, {1}));
  EXPECT_EQ(evaluate(g, {-(-c - 1)}, {})[0], Literal::ints({1}, {INT64_MIN}));
}

TEST(Evaluate, casts_between_floats_are_identities_and_to_integers_truncate) {
  Graph g;
  const Tensor x = g.constant(Literal::floats({4}, {0.1, -2.7, NAN, 1e30}, f64));
  EXPECT_EQ(evaluate(g, {cast(cast(x, f16), f64)}, {})[0],
            Literal::floats({4}, {0.1, -2.7, NAN, 1e30}, f64));
  EXPECT_EQ(evaluate(g, {cast(x, i64)}, {})[0], Literal::ints({4}, {0, -2, 0, INT64_MAX}));
  EXPECT_EQ(evaluate(g, {cast(x, boolean)}, {})[0], Literal::ints({4}, {1, 1, 1, 1}, boolean));
}

TEST(Evaluate, a_value_met_at_run_time_is_reported_with_op_and_line) {
  Graph g;
  const Tensor a = g.input("a", {1}, i32);
  const int line = __LINE__ + 1;
  const Tensor y = mod(a, a);
  EXPECT_EQ(
      message_of<ValueError>([&] { evaluate(g, {y}, {{"a", Literal::ints({1}, {0}, i32)}}); }),
      "mod (interpreter_test.cpp:" + std::to_string(line) + "): an integer is divided by zero");
}

// p and q are exchanged: an update that read the other's new value would lose one of them.
class Sessions : public ::testing::Test {
 protected:
  static Graph graph() {
    Graph g;
    const Tensor x = g.input("x", {2}), p = g.parameter("p", {2}, init::constant(1)),
                 q = g.state("q", {2}, init::constant(2));
    const Tensor rate = g.scalar("rate", 10);
    g.output("y", x * p);
    g.output("total", sum(x * q));
    g.update(p, q);
    g.update(q, p + cast(rate, f32));
    return g;
  }
  static Literal pair(double a, double b) { return Literal::floats({2}, {a, b}); }
};

TEST_F(Sessions, a_step_applies_all_updates_together) {
  Session s(graph());
  s.set_input("x", pair(1, 2));
  s.step();
  EXPECT_EQ(s.output("y"), pair(1, 2));
  EXPECT_EQ(s.value("p"), pair(2, 2));
  EXPECT_EQ(s.value("q"), pair(11, 11));
  s.set_scalar("rate", 0.5);
  s.step();
  EXPECT_EQ(s.output("y"), pair(2, 4));  // of the values before the step
  EXPECT_EQ(s.value("p"), pair(11, 11));
  EXPECT_EQ(s.value("q"), pair(2.5, 2.5));
  EXPECT_EQ(s.scalar("rate"), 0.5);
}

TEST_F(Sessions, run_changes_nothing) {
  Session s(graph());
  s.set_input("x", pair(1, 2));
  s.run();
  s.run();
  EXPECT_EQ(s.output("y"), pair(1, 2));
  EXPECT_EQ(s.output_scalar("total"), 6);
  EXPECT_EQ(s.value("p"), pair(1, 1));
  EXPECT_EQ(s.value("q"), pair(2, 2));
}

TEST_F(Sessions, a_failed_step_changes_nothing) {
  Session s(graph());
  EXPECT_EQ(message_of<TypeError>([&] { s.step(); }), "input 'x' f32[2] has no value");
  EXPECT_EQ(s.value("p"), pair(1, 1));
}

TEST_F(Sessions, set_input_says_what_is_wrong) {
  Session s(graph());
  EXPECT_EQ(message_of<TypeError>([&] { s.set_input("X", pair(1, 2)); }),
            "the graph has no input named 'X'; did you mean 'x'?");
  EXPECT_EQ(message_of<TypeError>([&] { s.set_input("p", pair(1, 2)); }),
            "the graph has no input named 'p'; did you mean 'x'?");
  EXPECT_EQ(message_of<TypeError>([&] { s.set_input("x", Literal::floats({3}, {1, 2, 3})); }),
            "'x' is f32[2], but f32[3] was given");
  EXPECT_EQ(message_of<TypeError>([&] { s.set_input("x", Literal::ints({2}, {1, 2})); }),
            "'x' is f32[2], but i64[2] was given");
}

TEST_F(Sessions, a_refused_input_leaves_no_value_behind) {
  Graph g;
  g.output("y", g.input("x", {}) + 1.0);
  Session s(std::move(g));
  EXPECT_THROW(s.set_input("x", pair(1, 2)), TypeError);
  EXPECT_EQ(message_of<TypeError>([&] { s.run(); }), "input 'x' f32[] has no value");
}

TEST_F(Sessions, other_values_are_checked_too) {
  Session s(graph());
  EXPECT_EQ(message_of<TypeError>([&] { s.set_value("x", pair(1, 2)); }),
            "the graph has no parameter or state named 'x'; did you mean 'p'?");
  EXPECT_EQ(message_of<TypeError>([&] { s.set_value("p", Literal::scalar(1)); }),
            "'p' is f32[2], but f64[] was given");
  EXPECT_EQ(s.value("p"), pair(1, 1));
  EXPECT_EQ(message_of<TypeError>([&] { s.set_scalar("rat", 1); }),
            "the graph has no scalar named 'rat'; did you mean 'rate'?");
  EXPECT_EQ(message_of<TypeError>([&] { (void)s.scalar("p"); }),
            "the graph has no scalar named 'p'");
  EXPECT_EQ(message_of<TypeError>([&] { (void)s.value("rate"); }),
            "the graph has no parameter or state named 'rate'");
}

TEST_F(Sessions, outputs_exist_after_a_step) {
  Session s(graph());
  EXPECT_EQ(message_of<TypeError>([&] { (void)s.output("y"); }),
            "output 'y' has no value before the first step");
  EXPECT_EQ(message_of<TypeError>([&] { (void)s.output("totl"); }),
            "the graph has no output named 'totl'; did you mean 'total'?");
  s.set_input("x", pair(1, 2));
  s.run();
  EXPECT_EQ(message_of<TypeError>([&] { (void)s.output_scalar("y"); }),
            "output 'y' is f32[2], not a scalar");
}

TEST_F(Sessions, observed_values_are_kept) {
  Graph g = graph();
  const Tensor inner = g.leaf("x") * g.leaf("p");
  Session s(g);
  s.observe({inner, g.leaf("x")});
  EXPECT_THAT(message_of<TypeError>([&] { (void)s.observed(inner); }),
              HasSubstr("not observed, or no step has been run"));
  s.set_input("x", pair(3, 4));
  s.step();
  EXPECT_EQ(s.observed(inner), pair(3, 4));
  EXPECT_EQ(s.observed(g.leaf("x")), pair(3, 4));
  EXPECT_THAT(message_of<TypeError>([&] { (void)s.observed(g.leaf("p")); }),
              HasSubstr("not observed"));
  EXPECT_THROW(s.observe({Tensor()}), TypeError);
}

TEST_F(Sessions, the_seed_reaches_parameters_and_the_random_counter) {
  Graph g;
  g.output("seed", g.rng_seed());
  g.output("p", g.parameter("p", {4}, init::uniform()));
  Session a(g, 7), b(g, 8);
  a.run(), b.run();
  EXPECT_EQ(a.output_scalar("seed"), 7);
  EXPECT_FALSE(a.output("p") == b.output("p"));
}

}  // namespace
}  // namespace pantala::ref
