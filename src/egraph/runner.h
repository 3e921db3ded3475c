// Saturation: rounds in which all rules are matched against the e-graph as it stands and what they
// find is added, until nothing new turns up or a limit is reached. Limits are counts, never times,
// so that the result does not depend on the machine.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "egraph/rule.h"

namespace pantala::egraph {

struct Limits {
  std::size_t rounds = 16;
  std::size_t nodes = 100'000;  // a round ends early when there are more
};

enum class StopReason : std::uint8_t { saturated, round_limit, node_limit };
std::string_view to_string(StopReason reason);

struct RuleCount {
  std::size_t matches = 0;  // where the left side fit and the condition held
  std::size_t fired = 0;    // of these, where something new was said
  double milliseconds = 0;  // for conditions and right sides; matching is shared by all rules
};

struct RunResult {
  StopReason stop_reason = StopReason::saturated;
  std::size_t rounds = 0;
  std::vector<RuleCount> rules;  // by rule
};

struct RunOptions {
  Limits limits = {};
  // Matches everything anew in each round instead of what is fresh: slower, and the oracle of
  // tests.
  bool full_matching = false;
  // Called after each round with its number, from 1 on.
  std::function<void(std::size_t)> on_round = {};
};

// The e-graph is rebuilt before and after.
RunResult saturate(EGraph& graph, std::span<const Rule> rules, const RunOptions& options = {});

}  // namespace pantala::egraph
