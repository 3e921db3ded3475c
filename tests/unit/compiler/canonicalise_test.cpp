// The stage `canonicalise`: what it may change, and what stays as the user made it.
#include "compiler/canonicalise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numbers>

#include "compiler/pipeline.h"
#include "ir/graph_data.h"
#include "pantala/ops.h"
#include "pantala/session.h"
#include "pantala/text.h"

namespace pantala::compiler::canonicalise_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// GELU and attention as an exporter writes them, a reshape that does nothing, and leaves that
// nothing needs.
Graph decomposed() {
  Graph g;
  const Tensor x = g.input("x", {2, 2, 3, 4});
  g.input("unused", {7});
  const Tensor w = g.parameter("w", {4}, init::constant(0.5));
  g.parameter("spare", {3}, init::constant(1));
  const Tensor count = g.state("count", {}, init::constant(0));
  const Tensor q = x * w, same = ops::apply("reshape", {q}, {{"shape", q.shape().vec()}})[0];
  const Tensor scores = matmul(same, q, {.transpose_b = true}) / 2;
  const Tensor mixed = matmul(softmax(scores), q);
  const Tensor active = mixed * 0.5 * (erf(mixed / std::numbers::sqrt2) + 1);
  g.output("last", active);
  g.output("first", x + 1);
  g.update(count, count + 1);
  return g;
}

struct Canonicalised {
  Graph graph;
  std::vector<std::string> rules;
};
Canonicalised canonical(const Graph& graph, const CompileOptions& options = {}) {
  Report report;
  LossGraph found = canonicalise({graph, {}}, false, host_options(options), report);
  Canonicalised result{std::move(found.graph), {}};
  for (const Report::Rule& rule : report.rules) result.rules.push_back(rule.name);
  return result;
}

TEST(Canonicalise, recognises_ops) {
  const auto [graph, rules] = canonical(decomposed());
  const std::string text = to_text(graph);
  EXPECT_THAT(text, HasSubstr("attention("));
  EXPECT_THAT(text, HasSubstr("gelu("));
  for (const char* gone : {"softmax(", "erf(", "contract("})
    EXPECT_THAT(text, Not(HasSubstr(gone)));
  EXPECT_THAT(rules, ::testing::IsSupersetOf({"attention", "reshape-to-same"}));
  const std::vector<Report::Rule> reported = compile(decomposed()).report.rules;
  EXPECT_TRUE(std::ranges::any_of(
      reported, [](const Report::Rule& rule) { return rule.name == "attention"; }));
}

TEST(Canonicalise, changes_no_more_than_the_options_allow) {
  const Graph given = decomposed();
  const auto plain = canonical(given, {.rewrite = Rewrite::none});
  EXPECT_EQ(to_text(plain.graph), to_text(given));
  EXPECT_TRUE(plain.rules.empty());
  EXPECT_EQ(to_text(canonical(given, {.optimize = false}).graph), to_text(given));

  const std::string strict = to_text(canonical(given, {.numerics = Numerics::strict}).graph);
  EXPECT_THAT(strict, HasSubstr("softmax("));
  EXPECT_THAT(strict, HasSubstr("erf("));
  EXPECT_THAT(strict, Not(HasSubstr("reshape(")));

  const auto without = canonical(given, {.rules_off = {"attention", "reshape-to-same"}});
  EXPECT_THAT(to_text(without.graph), HasSubstr("softmax("));
  EXPECT_THAT(to_text(without.graph), HasSubstr("gelu("));
  EXPECT_THAT(without.rules, Not(::testing::Contains("attention")));
}

TEST(Canonicalise, keeps_leaves_outputs_and_updates) {
  const Graph given = decomposed(), found = canonical(given).graph;
  const auto leaves = [](const Graph& graph) {
    std::vector<std::string> names;
    for (const Leaf& leaf : graph.leaves()) names.push_back(leaf.name + leaf.value.type().str());
    return names;
  };
  EXPECT_EQ(leaves(found), leaves(given));
  ASSERT_EQ(found.outputs().size(), 2U);
  EXPECT_EQ(found.outputs()[0].first, "last");
  EXPECT_EQ(found.outputs()[1].first, "first");
  ASSERT_EQ(found.updates().size(), 1U);
  EXPECT_EQ(found.updates()[0].first, found.leaf("count"));
}

TEST(Canonicalise, nodes_stand_where_the_user_wrote_them) {
  const Graph found = canonical(decomposed()).graph;
  for (const ir::Node& node : std::as_const(found).data()->nodes())
    EXPECT_THAT(std::string(node.where.file), HasSubstr("canonicalise_test")) << node.op->name;
}

TEST(Canonicalise, a_loss_that_is_no_output_stays_the_loss) {
  Graph given = decomposed();
  const Tensor loss = mean(square(given.output("last")));
  Report report;
  const LossGraph found =
      canonicalise({given, loss.id()}, true, host_options(CompileOptions{}), report);
  EXPECT_EQ(found.graph.outputs().size(), 2U);
  EXPECT_EQ(found.graph.value(found.loss).type(), loss.type());
  EXPECT_EQ(found.graph.data()->node(found.loss.node).op->name, "mean");
}

TEST(Canonicalise, a_softmax_by_hand_does_not_overflow) {
  Graph g;
  const Tensor e = exp(g.input("x", {1, 3}));
  g.output("y", e / sum(e, {1}, true));
  Session session = build_inference_session(g);
  session.set_input("x", Literal::floats({1, 3}, {100, 100, -100}));
  session.step();
  EXPECT_EQ(session.output("y").to_doubles(), (std::vector<double>{0.5, 0.5, 0}));
}

TEST(Canonicalise, trains_to_the_same_weights) {
  std::vector<std::vector<double>> weights;
  for (const Rewrite rewrite : {Rewrite::none, Rewrite::egraph}) {
    Graph given = decomposed();
    const Tensor loss = mean(square(given.output("last") - 1));
    Session session =
        build_session(given, loss, {.rewrite = rewrite, .optimizer = optim::sgd(0.5)});
    std::vector<double> values;
    for (int k = 0; k < 48; ++k) values.push_back(std::sin(k * 0.7));
    session.set_input("x", Literal::floats({2, 2, 3, 4}, values));
    for (int step = 0; step < 5; ++step) session.step();
    weights.push_back(session.weights().read("w").to_doubles());
  }
  for (std::size_t k = 0; k < weights[0].size(); ++k) {
    EXPECT_NEAR(weights[0][k], weights[1][k], 1e-6);
    EXPECT_NE(weights[0][k], 0.5);
  }
}

}  // namespace
}  // namespace pantala::compiler::canonicalise_test
