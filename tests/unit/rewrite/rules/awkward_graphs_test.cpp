// Graphs that nobody thinks of when a rule is written: all rules at once leave their numbers, and
// what is an error, as they were.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/graph_data.h"
#include "ops/face.h"
#include "pantala/error.h"
#include "pantala/ops.h"
#include "pantala/session.h"
#include "pantala/text.h"
#include "rewrite/canonical.h"
#include "rewrite/rules/rules.h"
#include "support/compiled.h"
#include "unit/rewrite/rules/promises.h"
#include "unit/rewrite/rules/samples.h"

namespace pantala::rewrite::awkward_graphs_test {
namespace {

using namespace samples;

// What a graph becomes by all rules that may be used before differentiation, and after it.
std::vector<Graph> all_forms(const Graph& given, Promise least = Promise::real) {
  return {canonical_form(given, allowed_rules(canonical_rules(), least)).graph,
          rewrite_greedily(given, allowed_rules(all_rules(), least))};
}

void expect_same(const Graph& given) {
  Random r(3);
  const ref::Bindings bindings = bindings_of(given, r, Numbers::integers);
  for (const Graph& made : all_forms(given)) {
    EXPECT_EQ(tests::differing(exactly(given, bindings), exactly(made, bindings), 1e-6), "")
        << to_text(given) << to_text(made);
    EXPECT_EQ(tests::differing(tests::run_compiled(given, bindings),
                               tests::run_compiled(made, bindings), 1e-4),
              "")
        << to_text(made);
  }
  for (const search::Level level : {search::Level::greedy, search::Level::egraph})
    EXPECT_EQ(tests::differing(tests::run_compiled(given, bindings),
                               tests::run_compiled(given, bindings, {.level = level}), 1e-4),
              "")
        << to_text(given);
}

Tensor permuted(const Tensor& x, const ir::Ints& axes) {
  return ops::apply("permute", {x}, {{"axes", axes}})[0];
}

TEST(AwkwardGraphs, scalars_that_are_moved) {
  Graph g;
  const Tensor x = g.input("x", {}), b = g.input("b", {});
  g.output("turned", permuted(x, {}) + repeated(b, {}));
  g.output("turned first", repeated(b, {}) + permuted(x, {}));
  const Tensor reshaped = ops::apply("reshape", {x}, {{"shape", ir::Ints{}}})[0];
  g.output("reshaped", reshaped + repeated(b, {}));
  g.output("one", reshape(x, {1}) + repeated(b, {1}));
  g.output("root", x / repeated(sqrt(square(b) + 1), {}));
  expect_same(g);
}

TEST(AwkwardGraphs, the_most_axes_that_there_are) {
  Graph g;
  const Shape shape{1, 2, 1, 2, 1, 2, 1, 2};
  const Tensor x = g.input("x", shape);
  const Tensor y = permuted(x, {7, 6, 5, 4, 3, 2, 1, 0});
  g.output("y", permuted(y, {1, 0, 3, 2, 5, 4, 7, 6}) * 2);
  g.output("parted", reshape(permuted(reshape(x, {4, 4}), {1, 0}), shape.vec()));
  g.output("softmax", exp(x) / repeated(sum(exp(x), {3}, true), shape));
  expect_same(g);
}

// Every value is an output, and the same one twice.
TEST(AwkwardGraphs, outputs_that_are_inputs_and_each_other) {
  Graph g;
  const Tensor x = g.input("x", {2, 3});
  g.output("x", x);
  g.output("twice", -(-x));
  g.output("again", -(-(x * 1)));
  g.output("slice",
           ops::apply("slice", {x}, {{"starts", ir::Ints{0, 0}}, {"ends", ir::Ints{2, 3}}})[0]);
  expect_same(with_all_values(g));
}

TEST(AwkwardGraphs, updates_by_what_is_equal_to_something_else) {
  Graph g;
  const Tensor x = g.input("x", {2, 3});
  const Tensor p = g.parameter("p", {2, 3}, init::constant(2)), s = g.state("s", {2, 3});
  g.update(p, p * 1 + 0);        // itself
  g.update(s, -(-(p + x)) / 4);  // reads what is written
  g.output("p", p * 1);
  g.output("y", where(gt(x, 0), p - x, p));
  expect_same(g);
}

// The norm is taken apart for its result alone; its statistics go on.
TEST(AwkwardGraphs, norms_whose_statistics_are_updated) {
  Graph g;
  const Tensor x = g.input("x", {3, 4, 2}), one = g.constant(1, {4}), zero = g.constant(0, {4});
  const Tensor mean = g.state("mean", {4}), variance = g.state("variance", {4}, init::ones());
  const auto norm = batch_norm_train(x, one, zero, mean, variance);
  const auto spread = [&](const char* name) {
    return broadcast_to(g.input(name, {4, 1}), x.shape());
  };
  g.output("y", norm.y * spread("w") + spread("b"));
  g.update(mean, norm.running_mean);
  g.update(variance, norm.running_var);
  expect_same(g);
}

TEST(AwkwardGraphs, attention_of_nothing) {
  for (const Shape& q :
       std::vector<Shape>{{2, 0, 3, 4}, {0, 2, 3, 4}, {2, 2, 0, 4}, {2, 2, 3, 0}}) {
    Graph g;
    const Tensor x = g.input("x", q), k = g.input("k", q), v = g.input("v", q);
    g.output("y", matmul(softmax(matmul(x, k, {.transpose_b = true}) * 0.5), v));
    expect_same(g);
  }
  Graph g;  // no key
  const Shape none{2, 2, 0, 4};
  g.output(
      "y",
      matmul(softmax(matmul(g.input("x", {2, 2, 3, 4}), g.input("k", none), {.transpose_b = true})),
             g.input("v", none)));
  expect_same(g);
}

// Zeros of both signs, infinities and NaN, by those rules that keep all bits, together.
TEST(AwkwardGraphs, bits_that_all_strict_rules_keep) {
  for (const Sample& sample : all_samples()) {
    if (!sample.refused_by.empty()) continue;
    Random r(11);
    const Graph given = sample.make(r);
    for (const Graph& made : all_forms(given, Promise::order)) {
      if (to_text(made) == to_text(given)) continue;
      EXPECT_EQ(differing_results(given, made, r, Promise::bits, "cpu"), "")
          << sample.rule << "\n"
          << to_text(given) << to_text(made);
    }
  }
}

// Classes that there are not are an error, also -100, which a loss of the library leaves out.
TEST(AwkwardGraphs, classes_that_there_are_not) {
  for (const DType dtype : {i64, i32}) {
    Graph g;
    const Tensor x = g.input("x", {2, 5}), i = g.input("i", {2}, dtype);
    g.output("y", -squeeze(gather(log_softmax(x, 1), unsqueeze(i, 1), 1), 1));
    for (const std::int64_t wrong : {std::int64_t{-100}, std::int64_t{-1}, std::int64_t{5}}) {
      const ref::Bindings bindings{{"x", Literal(x.type())},
                                   {"i", Literal::ints({2}, {1, wrong}, dtype)}};
      EXPECT_THROW(exactly(g, bindings), ValueError);
      for (const Graph& made : all_forms(g)) {
        EXPECT_NE(to_text(made).find("softmax_cross_entropy"), std::string::npos);
        EXPECT_THROW(exactly(made, bindings), ValueError) << wrong;
      }
      Session session = build_inference_session(g);
      EXPECT_THROW(session.set_input("i", bindings.at("i")), ValueError) << wrong;
    }
  }
}

}  // namespace
}  // namespace pantala::rewrite::awkward_graphs_test
