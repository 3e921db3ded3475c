// Equality saturation of a graph: all rules that the promise allows, then the cheapest way to
// compute the outputs and updates.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "egraph/runner.h"
#include "rewrite/extraction.h"
#include "rewrite/rule.h"

namespace pantala::rewrite {

struct Options {
  Promise promise = Promise::real;    // rules that promise less are left out
  std::vector<std::string> off = {};  // rules that are left out by name
  egraph::Limits limits = {.rounds = 12, .nodes = 200'000};
};

struct RuleReport {
  std::string name;
  std::size_t matches = 0, fired = 0;
  std::size_t reached = 0;  // nodes of the result that it made
};

struct Result {
  Graph graph;
  bool changed = false;  // whether it is another graph than the one that was given
  std::vector<RuleReport> rules;
  std::size_t nodes = 0, classes = 0, rounds = 0;
  egraph::StopReason stop_reason = egraph::StopReason::saturated;
};

// What a node costs, given the joint graph that it belongs to.
using CostModel = std::function<double(const Joint&, NodeId)>;

Result optimise(const Graph& graph, std::span<const Rule> rules, const CostModel& cost,
                const Options& options = {});

}  // namespace pantala::rewrite
