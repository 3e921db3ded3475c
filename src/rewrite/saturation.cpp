#include "rewrite/saturation.h"

#include <algorithm>
#include <memory>

#include "ir/shared_graph.h"
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
  Graph result = ir::shared(graph);
  auto joint = std::make_unique<Joint>(result);
  bool changed = true;
  for (int k = 0; k < times && changed; ++k) {
    changed = false;
    for (const Rule& rule : rules) {
      const std::size_t nodes = joint->equal().nodes();
      std::vector<Application> applications;
      const std::vector<egraph::Rule> compiled{compile(rule, *joint, applications)};
      egraph::saturate(joint->equal(), compiled, {.limits = {.rounds = 1}});
      if (!applications.empty()) {
        const std::vector<bool> all(applications.size(), true);
        result = to_graph(*joint, selection_with(*joint, applications, all));
        changed = true;
      }
      // A rule that fits nowhere leaves the e-graph to the next one.
      if (!applications.empty() || joint->equal().nodes() != nodes)
        joint = std::make_unique<Joint>(result);
    }
  }
  return result;
}

}  // namespace pantala::rewrite
