// What a graph is expected to cost.
#pragma once

#include <map>
#include <string>

#include "schedule/estimate.h"
#include "search/search.h"

namespace pantala::search {

// What a node would cost alone, which "cheapest nodes" minimises: the bytes of what it reads and
// makes.
double bytes_of(const rewrite::Joint& joint, rewrite::NodeId node);

// Weighs graphs for the processor of a cost table; one that was weighed before is not weighed
// again.
class Scales {
 public:
  explicit Scales(const Options& options) : options_(options) {}

  // Of any graph: it is lowered first.
  Graph lowered(const Graph& graph) const;
  const Candidate& weigh(const Graph& lowered);

 private:
  const Options& options_;
  schedule::EffortMemo memo_;
  std::map<std::uint64_t, Candidate> known_;  // by the graph's content
};

}  // namespace pantala::search
