#include "rewrite/optimise.h"

#include <algorithm>

namespace pantala::rewrite {

namespace {

std::vector<Rule> allowed_rules(std::span<const Rule> rules, const Options& options) {
  std::vector<Rule> allowed;
  for (const Rule& rule : rules)
    if (rule.promise <= options.promise && std::ranges::count(options.off, rule.name) == 0)
      allowed.push_back(rule);
  return allowed;
}

// Which rules made the nodes that were selected.
void count_reached(const Joint& joint, const Selection& selection, Result& result) {
  for (const NodeId node : selection.nodes)
    if (node.valid())
      if (const egraph::RuleId rule = joint.equal().origin(node).rule; rule.valid())
        ++result.rules[rule.index()].reached;
}

}  // namespace

Result optimise(const Graph& graph, std::span<const Rule> rules, const CostModel& cost,
                const Options& options) {
  Joint joint(graph);
  const std::vector<Rule> allowed = allowed_rules(rules, options);
  std::vector<egraph::Rule> compiled;
  for (const Rule& rule : allowed) compiled.push_back(compile(rule, joint));
  const egraph::RunResult run =
      egraph::saturate(joint.equal(), compiled, {.limits = options.limits});

  Result result;
  for (std::size_t k = 0; k < allowed.size(); ++k)
    result.rules.push_back({allowed[k].name, run.rules[k].matches, run.rules[k].fired});
  result.nodes = joint.equal().nodes();
  result.classes = joint.equal().classes();
  result.rounds = run.rounds;
  result.stop_reason = run.stop_reason;

  const NodeCost node_cost = [&](NodeId node) { return cost(joint, node); };
  const Selection given = given_selection(joint);
  const Selection best = improved(joint, given, node_cost);
  result.changed = cost_of(joint, best, node_cost) < cost_of(joint, given, node_cost);
  if (result.changed) count_reached(joint, best, result);
  result.graph = result.changed ? to_graph(joint, best) : graph;
  return result;
}

}  // namespace pantala::rewrite
