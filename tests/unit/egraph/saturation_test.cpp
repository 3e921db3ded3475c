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

std::vector<std::size_t> math_sizes(std::size_t rounds, bool full_matching) {
  EGraph graph;
  const std::vector<Rule> rules = tests::math_rules(graph);
  tests::add_math_terms(graph);
  std::vector<std::size_t> sizes = {graph.nodes()};
  RunOptions options = {.limits = {rounds, 10'000'000}, .full_matching = full_matching};
  options.on_round = [&](std::size_t) { sizes.push_back(graph.nodes()); };
  saturate(graph, rules, options);
  return sizes;
}

TEST(Saturation, the_reference_workload_has_the_nodes_that_every_engine_finds) {
  const std::vector<std::size_t> sizes = math_sizes(11, false);
  EXPECT_EQ(sizes, std::vector(tests::kMathNodes.begin(), tests::kMathNodes.end()));
}

TEST(Saturation, matching_what_is_fresh_finds_what_matching_everything_finds) {
  EXPECT_EQ(math_sizes(9, false), math_sizes(9, true));
}

std::string text_of(const EGraph& graph) {
  std::string text;
  for (std::size_t k = 0; k < graph.node_ids(); ++k) {
    const NodeId node(k);
    if (!graph.is_live(node)) continue;
    text += std::to_string(graph.class_of(node).index()) + "=" +
            graph.symbols().name(graph.op(node)) + "(";
    for (std::size_t c = 0; c < graph.arity(node); ++c)
      text += std::to_string(graph.child(node, c).index()) + ",";
    text += ")\n";
  }
  return text;
}

TEST(Saturation, two_runs_give_the_same_e_graph) {
  std::string texts[2];
  for (std::string& text : texts) {
    EGraph graph;
    const std::vector<Rule> rules = tests::math_rules(graph);
    tests::add_math_terms(graph);
    saturate(graph, rules, {.limits = {8, 100'000}});
    text = text_of(graph);
  }
  EXPECT_EQ(texts[0], texts[1]);
}

TEST(Saturation, proves_what_follows_from_its_rules) {
  EGraph graph;
  const std::vector<Rule> rules = {
      rewrite(graph.symbols(), "commute", "(+ ?a ?b)", "(+ ?b ?a)"),
      rewrite(graph.symbols(), "associate", "(+ ?a (+ ?b ?c))", "(+ (+ ?a ?b) ?c)"),
      rewrite(graph.symbols(), "zero", "(+ ?a 0)", "?a"),
  };
  const ClassId a = add_term(graph, "(+ x (+ y (+ z 0)))");
  const ClassId b = add_term(graph, "(+ z (+ y x))");
  const RunResult result = saturate(graph, rules, {.limits = {20, 10'000}});
  EXPECT_EQ(result.stop_reason, StopReason::saturated);
  EXPECT_EQ(graph.find(a), graph.find(b));
  EXPECT_NE(graph.find(a), graph.find(add_term(graph, "(+ x y)")));
  EXPECT_GT(result.rules[0].fired, 0u);
  EXPECT_GE(result.rules[0].matches, result.rules[0].fired);
}

// `(f (g ...))`: whatever g has, and however much of it.
std::size_t matches_of_any_operands(bool full_matching) {
  EGraph graph;
  Rule rule{.name = "any", .variables = {}, .left = {}};
  Pattern pattern;
  const TermId inner = pattern.terms.push_back(
      {.variable = {}, .op = graph.symbols().op("g"), .children = {}, .any_children = true});
  pattern.terms.push_back({.variable = {}, .op = graph.symbols().op("f"), .children = {inner}});
  rule.left.push_back(pattern);
  rule.apply = [](EGraph& e, const Match& match, const Reason& reason) {
    return e.unite(e.class_of(match.node(0)), e.class_of(match.node(1)), reason);
  };
  const std::vector<Rule> rules = {
      rule, rewrite(graph.symbols(), "more", "(h ?a)", "(f (g ?a ?a ?a ?a))")};
  for (const char* term : {"(f (g x))", "(f (g x y))", "(f (g x y z))", "(f (h x))", "(h x)"})
    add_term(graph, term);
  const RunResult result =
      saturate(graph, rules, {.limits = {5, 1000}, .full_matching = full_matching});
  for (const char* term : {"(g x)", "(g x y)", "(g x y z)", "(g x x x x)"})
    EXPECT_EQ(graph.find(add_term(graph, term)),
              graph.find(add_term(graph, std::string("(f ") + term + ")")));
  EXPECT_NE(graph.find(add_term(graph, "(g x)")), graph.find(add_term(graph, "(g x y)")));
  return result.rules[0].fired;
}

TEST(Saturation, nodes_of_any_number_of_operands_are_matched) {
  const std::size_t fired = matches_of_any_operands(false);
  EXPECT_GE(fired, 4u);
  EXPECT_EQ(fired, matches_of_any_operands(true));
}

TEST(Saturation, says_which_limit_ended_it) {
  EGraph graph;
  const std::vector<Rule> rules = tests::math_rules(graph);
  tests::add_math_terms(graph);
  RunResult result = saturate(graph, rules, {.limits = {3, 1'000'000}});
  EXPECT_EQ(result.stop_reason, StopReason::round_limit);
  EXPECT_EQ(result.rounds, 3u);
  result = saturate(graph, rules, {.limits = {50, 5'000}});
  EXPECT_EQ(result.stop_reason, StopReason::node_limit);
  // A round that is cut short stops within what was matched together.
  EXPECT_GT(graph.nodes(), 5'000u);
  EXPECT_LT(graph.nodes(), 10'000u);
  EXPECT_EQ(to_string(result.stop_reason), "node limit");
}

TEST(Saturation, a_condition_keeps_a_rule_from_firing) {
  for (const bool allowed : {true, false}) {
    EGraph graph;
    std::vector<Rule> rules = {rewrite(graph.symbols(), "cancel", "(/ ?a ?a)", "1")};
    const ClassId x = add_term(graph, "x");
    rules[0].condition = [&](const EGraph& g, const Match& match) {
      EXPECT_EQ(match[VariableId(0)], g.find(x));
      EXPECT_EQ(g.symbols().name(g.op(match.node(0))), "/");
      return allowed;
    };
    const ClassId ratio = add_term(graph, "(/ x x)");
    const RunResult result = saturate(graph, rules);
    EXPECT_EQ(graph.find(ratio) == graph.find(add_term(graph, "1")), allowed);
    EXPECT_EQ(result.rules[0].matches, allowed ? 1u : 0u);
  }
}

TEST(Saturation, a_pattern_with_a_payload_fits_that_payload_alone) {
  EGraph graph;
  const std::vector<Rule> rules = {rewrite(graph.symbols(), "two", "(f 2)", "(g 2)")};
  const ClassId two = add_term(graph, "(f 2)"), three = add_term(graph, "(f 3)");
  saturate(graph, rules);
  EXPECT_EQ(graph.find(two), graph.find(add_term(graph, "(g 2)")));
  EXPECT_NE(graph.find(three), graph.find(add_term(graph, "(g 3)")));
}

// Products that share their left operand become parts of one.
Rule merge_products(Symbols& symbols) {
  Rule rule = {.name = "merge", .variables = {}, .left = {}};
  rule.left.push_back(parse_pattern("(mul ?x ?a)", symbols, rule.variables));
  rule.left.push_back(parse_pattern("(mul ?x ?b)", symbols, rule.variables));
  const OpId mul = symbols.op("mul"), cat = symbols.op("cat"), part = symbols.op("part");
  const SymbolId product = symbols.intern(mul, 2), join = symbols.intern(cat, 2);
  const SymbolId first = symbols.intern(part, 1, 0), second = symbols.intern(part, 1, 1);
  rule.condition = [](const EGraph& g, const Match& match) {
    return g.find(match[VariableId(1)]) < g.find(match[VariableId(2)]);
  };
  rule.apply = [=](EGraph& g, const Match& match, const Reason& reason) {
    const std::vector<ClassId> both = {match[VariableId(1)], match[VariableId(2)]};
    const std::vector<ClassId> operands = {match[VariableId(0)], g.add(join, both)};
    const ClassId merged = g.add(product, operands);
    const bool one = g.unite(g.class_of(match.node(0)), g.add(first, {&merged, 1}), reason);
    const bool two = g.unite(g.class_of(match.node(1)), g.add(second, {&merged, 1}), reason);
    return one || two;
  };
  return rule;
}

TEST(Saturation, several_patterns_are_matched_over_the_same_variables) {
  EGraph graph;
  const std::vector<Rule> rules = {merge_products(graph.symbols())};
  const ClassId q = add_term(graph, "(mul x wq)"), k = add_term(graph, "(mul x wk)");
  const ClassId other = add_term(graph, "(mul y wv)");
  RunResult result = saturate(graph, rules, {.limits = {1, 1000}});
  EXPECT_EQ(result.rules[0].matches, 1u);
  EXPECT_EQ(result.rules[0].fired, 1u);
  const ClassId merged = add_term(graph, "(mul x (cat wq wk))");
  const OpId part = graph.symbols().op("part");
  EXPECT_EQ(graph.lookup(graph.symbols().intern(part, 1, 0), {&merged, 1}), graph.find(q));
  EXPECT_EQ(graph.lookup(graph.symbols().intern(part, 1, 1), {&merged, 1}), graph.find(k));
  EXPECT_EQ(graph.find(other), other);
}

TEST(Saturation, several_patterns_find_the_same_when_only_what_is_fresh_is_matched) {
  std::vector<std::size_t> sizes[2];
  for (const bool full : {false, true}) {
    EGraph graph;
    const std::vector<Rule> rules = {
        merge_products(graph.symbols()),
        rewrite(graph.symbols(), "unwrap", "(wrap ?a)", "?a"),
    };
    // The second shares its operand only once a rule has shown it.
    add_term(graph, "(mul x a)");
    add_term(graph, "(mul (wrap x) b)");
    add_term(graph, "(mul (wrap (wrap x)) c)");
    RunOptions options = {.limits = {3, 10'000}, .full_matching = full};
    options.on_round = [&](std::size_t) { sizes[full].push_back(graph.nodes()); };
    saturate(graph, rules, options);
  }
  EXPECT_EQ(sizes[0], sizes[1]);
  EXPECT_GT(sizes[0].back(), sizes[0].front());
}

TEST(Rules, text_that_is_no_pattern_is_refused) {
  Symbols symbols;
  EXPECT_EQ(message_of<ParseError>([&] { rewrite(symbols, "r", "(+ ?a", "?a"); }),
            "pattern '(+ ?a', character 6: expected ')'");
  EXPECT_EQ(message_of<ParseError>([&] { rewrite(symbols, "r", "(+ ?a ?b)) ", "?a"); }),
            "pattern '(+ ?a ?b)) ', character 10: expected the end");
  EXPECT_EQ(message_of<ParseError>([&] { rewrite(symbols, "r", "", "?a"); }),
            "pattern '', character 1: expected a term");
  EXPECT_EQ(message_of<ParseError>([&] { rewrite(symbols, "r", "(f ?a)", "?b"); }),
            "rule 'r': ?b stands on the right side alone");
}

}  // namespace
}  // namespace pantala::egraph
