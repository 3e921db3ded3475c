// The right side of a rule as a list of nodes to make, for many matches at a time: the table's
// memory is asked for before it is needed, which is most of what making nodes costs in a large
// e-graph.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "egraph/matcher.h"

namespace pantala::egraph {

class Instantiation {
 public:
  Instantiation(Symbols& symbols, const Rule& rule, RuleId id, const MatchLayout& layout);

  // Matches as Matcher::Sink takes them, one behind the other. Returns at how many places there was
  // something new to say.
  std::size_t apply(EGraph& graph, std::span<const std::uint32_t> matches);

 private:
  using Raw = std::uint32_t;
  static constexpr Raw kMade = 0x80000000;  // a source that is a node made before, not a variable
  struct Node {
    Raw symbol = 0;
    std::vector<Raw> sources = {};
  };
  std::size_t make_nodes(EGraph& graph, std::size_t number, std::span<const Raw> matches);
  Raw source(Raw source, const Raw* match, std::size_t place) const;

  RuleId id_;
  std::size_t stride_ = 0, nodes_of_match_ = 0, count_ = 0;
  std::vector<Node> nodes_;
  Raw root_variable_ = 0;  // where the right side is a variable alone
  std::vector<Raw> made_;  // by match and node
  std::vector<Raw> arguments_;
  std::vector<std::uint64_t> hashes_;
};

}  // namespace pantala::egraph
