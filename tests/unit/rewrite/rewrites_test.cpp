// Nodes know the rules that made them, and those by which they stand for others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "ir/graph_data.h"
#include "ops/arithmetic.h"
#include "pantala/ops.h"
#include "rewrite/extraction.h"
#include "rewrite/saturation.h"

namespace pantala::rewrite::rewrites_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const Pattern x = any("x"), y = any("y");
const std::vector<Rule>& rules() {
  static const std::vector<Rule> all = {
      {.name = "difference",
       .promise = Promise::bits,
       .left = node<op::Sub>(x, y),
       .right = [](Fit& f) { return f["x"] + -f["y"]; }},
      {.name = "twice negated",
       .promise = Promise::bits,
       .left = node<op::Neg>(node<op::Neg>(x)),
       .right = [](Fit& f) { return f["x"]; }},
  };
  return all;
}

// What stands in the graph after all rules were applied wherever they fit: by op.
std::vector<std::string> rules_of(const Graph& graph, std::string_view op) {
  std::vector<std::string> names;
  for (const ir::Node& node : graph.data()->nodes())
    if (node.op->name == op && node.where.rewrites)
      for (const ir::Rewriting& one : *node.where.rewrites) names.push_back(one.rule);
  return names;
}

Graph rewritten(const Graph& graph) {
  const Saturation all(graph, rules());
  const std::vector<bool> wanted(all.applications().size(), true);
  return to_graph(all.joint(), selection_with(all.joint(), all.applications(), wanted));
}

TEST(Rewrites, are_noted_by_the_nodes_that_they_make) {
  Graph graph;
  const Tensor a = graph.input("a", {4}), b = graph.input("b", {4});
  graph.output("y", exp(a - b));
  const Graph result = rewritten(graph);
  EXPECT_THAT(rules_of(result, "add"), ElementsAre("difference"));
  EXPECT_THAT(rules_of(result, "neg"), ElementsAre("difference"));
  EXPECT_THAT(rules_of(result, "exp"), IsEmpty());
  for (const ir::Node& node : result.data()->nodes())
    if (node.where.rewrites) {
      EXPECT_THAT(node.where.rewrites->at(0).from, HasSubstr("sub f32[4] (rewrites_test.cpp:"));
    }
}

TEST(Rewrites, are_noted_where_a_node_takes_the_place_of_another) {
  Graph graph;
  const Tensor kept = exp(graph.input("a", {4}));
  graph.output("y", sin(-(-kept)));
  const Graph result = rewritten(graph);
  EXPECT_THAT(rules_of(result, "exp"), ElementsAre("twice negated"));
  EXPECT_THAT(rules_of(result, "sin"), IsEmpty());
}

TEST(Rewrites, follow_one_another_through_a_second_rewriting) {
  Graph graph;
  const Tensor a = graph.input("a", {4}), b = graph.input("b", {4});
  graph.output("y", a - b);
  const Graph once = rewritten(graph);
  const Rule back = {.name = "commuted",
                     .promise = Promise::bits,
                     .left = node<op::Add>(x, node<op::Neg>(y)),
                     .right = [](Fit& f) { return -f["y"] + f["x"]; }};
  const Graph twice = rewrite_greedily(once, std::vector<Rule>{back}, 1);
  EXPECT_THAT(rules_of(twice, "add"), ElementsAre("difference", "commuted"));
}

}  // namespace
}  // namespace pantala::rewrite::rewrites_test
