#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "egraph/runner.h"
#include "pantala/error.h"
#include "support/errors.h"
#include "support/math_workload.h"

namespace pantala::egraph {
namespace {

using tests::add_term;
using tests::message_of;

// Follows a proof: every step begins where the last one ended, congruent nodes have one symbol, and
// a rule that is named fired at one of its two nodes.
void check(const EGraph& graph, const std::vector<ProofStep>& steps, NodeId from, NodeId to,
           std::size_t rules) {
  NodeId at = from;
  for (const ProofStep& step : steps) {
    ASSERT_EQ(step.from, at);
    at = step.to;
    ASSERT_EQ(graph.class_of(step.from), graph.class_of(step.to));
    if (step.kind == ProofStep::Kind::rule) {
      ASSERT_LT(step.reason.rule.index(), rules);
      ASSERT_TRUE(step.reason.at == step.from || step.reason.at == step.to);
    }
    if (step.kind != ProofStep::Kind::congruence) continue;
    ASSERT_EQ(graph.symbol(step.from), graph.symbol(step.to));
    ASSERT_EQ(step.children.size(), graph.arity(step.from));
    for (const std::vector<ProofStep>& child : step.children)
      if (!child.empty()) check(graph, child, child.front().from, child.back().to, rules);
  }
  ASSERT_EQ(at, to);
}

TEST(Proofs, name_the_rules_in_order) {
  EGraph graph({.proofs = true, .analysis = nullptr});
  const std::vector<Rule> rules = {
      rewrite(graph.symbols(), "a", "(a ?x)", "(b ?x)"),
      rewrite(graph.symbols(), "b", "(b ?x)", "(c ?x)"),
  };
  const ClassId a = add_term(graph, "(a x)");
  saturate(graph, rules);
  const ClassId c = add_term(graph, "(c x)");
  ASSERT_EQ(graph.find(a), graph.find(c));
  NodeId last;
  for (std::size_t k = 0; k < graph.node_ids(); ++k)
    if (graph.symbols().name(graph.op(NodeId(k))) == "c") last = NodeId(k);
  const std::vector<ProofStep> steps = graph.explain(graph.representative(a), last);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].reason.rule, RuleId(0));
  EXPECT_EQ(steps[1].reason.rule, RuleId(1));
  EXPECT_EQ(graph.origin(last).rule, RuleId(1));
  EXPECT_EQ(graph.origin(graph.representative(a)).rule, RuleId());
  const std::vector<ProofStep> rules_alone = graph.rules_between(graph.representative(a), last);
  ASSERT_EQ(rules_alone.size(), 2u);
  EXPECT_EQ(rules_alone[0].reason.rule, RuleId(0));
  EXPECT_EQ(rules_alone[1].reason.rule, RuleId(1));
}

TEST(Proofs, without_congruences_have_rules_alone) {
  EGraph graph({.proofs = true, .analysis = nullptr});
  const std::vector<Rule> rules = {rewrite(graph.symbols(), "a", "(a ?x)", "(b ?x)")};
  const ClassId left = add_term(graph, "(f (a x))"), right = add_term(graph, "(f (b x))");
  saturate(graph, rules);
  const NodeId from = graph.representative(left), to = graph.representative(right);
  ASSERT_EQ(graph.explain(from, to).size(), 1u);
  EXPECT_EQ(graph.explain(from, to)[0].kind, ProofStep::Kind::congruence);
  EXPECT_TRUE(graph.rules_between(from, to).empty());
}

TEST(Proofs, congruence_is_explained_by_its_operands) {
  EGraph graph({.proofs = true, .analysis = nullptr});
  const ClassId fx = add_term(graph, "(f (g x) z)"), fy = add_term(graph, "(f (g y) z)");
  graph.unite(add_term(graph, "x"), add_term(graph, "y"));
  graph.rebuild();
  const NodeId from = graph.representative(fx), to = graph.representative(fy);
  const std::vector<ProofStep> steps = graph.explain(from, to);
  check(graph, steps, from, to, 0);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].kind, ProofStep::Kind::congruence);
  ASSERT_EQ(steps[0].children.size(), 2u);
  EXPECT_TRUE(steps[0].children[1].empty());
  ASSERT_EQ(steps[0].children[0].size(), 1u);
  EXPECT_EQ(steps[0].children[0][0].kind, ProofStep::Kind::congruence);
  EXPECT_EQ(steps[0].children[0][0].children[0][0].kind, ProofStep::Kind::given);
}

TEST(Proofs, every_class_of_a_saturated_workload_is_explained) {
  EGraph graph({.proofs = true, .analysis = nullptr});
  const std::vector<Rule> rules = tests::math_rules(graph);
  tests::add_math_terms(graph);
  saturate(graph, rules, {.limits = {6, 100'000}});
  EXPECT_EQ(graph.nodes(), tests::kMathNodes[6]);
  for (std::size_t k = 0; k < graph.node_ids(); ++k) {
    const NodeId node(k), first = graph.representative(graph.class_of(node));
    check(graph, graph.explain(first, node), first, node, rules.size());
    if (HasFatalFailure()) return;
  }
}

TEST(Proofs, are_refused_where_there_are_none) {
  EGraph graph;
  const ClassId x = add_term(graph, "x");
  EXPECT_EQ(message_of<InternalError>(
                [&] { graph.explain(graph.representative(x), graph.representative(x)); }),
            "egraph: explain() needs Options::proofs");
  EGraph other({.proofs = true, .analysis = nullptr});
  const ClassId a = add_term(other, "a"), b = add_term(other, "b");
  EXPECT_EQ(message_of<InternalError>(
                [&] { other.explain(other.representative(a), other.representative(b)); }),
            "egraph: these nodes are not equal");
}

}  // namespace
}  // namespace pantala::egraph
