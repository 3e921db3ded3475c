// Saturation: a joint graph with everything that a table of rules says about it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "egraph/runner.h"
#include "rewrite/joint.h"
#include "rewrite/rule.h"

namespace pantala::rewrite {

// The rules that promise at least this much and are not switched off by name.
std::vector<Rule> allowed_rules(std::span<const Rule> rules, Promise least,
                                std::span<const std::string> off = {});

class Saturation {
 public:
  Saturation(const Graph& graph, std::vector<Rule> rules,
             const egraph::Limits& limits = {.rounds = 12, .nodes = 200'000});
  Saturation(const Saturation&) = delete;
  Saturation& operator=(const Saturation&) = delete;

  const Joint& joint() const { return joint_; }
  const std::vector<Rule>& rules() const { return rules_; }
  // In the order in which they were made.
  const std::vector<Application>& applications() const { return applications_; }
  const egraph::RunResult& run() const { return run_; }

 private:
  std::vector<Rule> rules_;
  Joint joint_;
  std::vector<Application> applications_;
  egraph::RunResult run_;
};

// The rules one after another, each wherever it fits, until none changes anything or the list was
// gone through so often: what a rewriter without an e-graph does.
Graph rewrite_greedily(const Graph& graph, std::span<const Rule> rules, int times = 4);

}  // namespace pantala::rewrite
