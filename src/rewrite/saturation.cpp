#include "rewrite/saturation.h"

#include <algorithm>

#include "rewrite/extraction.h"

namespace pantala::rewrite {

std::vector<Rule> allowed_rules(std::span<const Rule> rules, Promise least,
                                std::span<const std::string> off) {
  std::vector<Rule> allowed;
  std::ranges::copy_if(rules, std::back_inserter(allowed), [&](const Rule& rule) {
    return rule.promise <= least && std::ranges::find(off, rule.name) == off.end();
  });
  return allowed;
}

Saturation::Saturation(const Graph& graph, std::vector<Rule> rules, const egraph::Limits& limits)
    : rules_(std::move(rules)), joint_(graph) {
  std::vector<egraph::Rule> compiled;
  for (const Rule& rule : rules_) compiled.push_back(compile(rule, joint_, applications_));
  run_ = egraph::saturate(joint_.equal(), compiled, {.limits = limits});
}

Graph rewrite_greedily(const Graph& graph, std::span<const Rule> rules, int times) {
  Graph result = graph;
  bool changed = true;
  for (int k = 0; k < times && changed; ++k) {
    changed = false;
    for (const Rule& rule : rules) {
      const Saturation once(result, {rule}, {.rounds = 1});
      if (once.applications().empty()) continue;
      const std::vector<bool> all(once.applications().size(), true);
      result = to_graph(once.joint(), selection_with(once.joint(), once.applications(), all));
      changed = true;
    }
  }
  return result;
}

}  // namespace pantala::rewrite
