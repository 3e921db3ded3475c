// What a graph is expected to cost.
#pragma once

#include <map>
#include <string>

#include "schedule/decision_memo.h"
#include "schedule/estimate.h"
#include "search/search.h"

namespace pantala::search {

// A lowered graph with what the scheduler would make of it.
struct Judged {
  schedule::Decisions decisions;  // with the graph
  schedule::Estimate estimate;
  const Graph& graph() const { return *decisions.graph; }
  std::int64_t peak() const { return estimate.peak_bytes; }
};
// Whether a candidate is expected to take less time, or the same with less memory.
bool is_better(const Candidate& one, const Candidate& than);
// Whether it pays to store or lay out something otherwise: a tenth of the peak of memory is worth a
// hundredth of the time, of which it must not take more than `most_microseconds`.
bool pays(const Judged& moved, const Judged& from, double most_microseconds);
Candidate candidate_of(const Judged& judged, std::string name);

// What a node would cost alone, which "cheapest nodes" minimises: the bytes of what it reads and
// makes.
double bytes_of(const rewrite::Joint& joint, rewrite::NodeId node);

// Weighs graphs for the processor of a cost table; one that was weighed before is not weighed
// again.
class Scales {
 public:
  explicit Scales(const Options& options) : options_(options) {}

  // Whether two lowered graphs are the same.
  static bool are_same(const Graph& one, const Graph& other);
  // Of any graph: it is lowered first.
  Graph lowered(const Graph& graph) const;
  const Candidate& weigh(const Graph& lowered);
  Judged judge(const Graph& lowered);

  const schedule::ArchetypeTable& archetypes() const { return options_.archetypes; }
  // Throws if the search was called off.
  void check() const {
    if (options_.check) options_.check();
  }

 private:
  const Options& options_;
  schedule::DecisionMemo decided_;
  schedule::EffortMemo memo_;
  std::map<std::uint64_t, Candidate> known_;  // by the graph's content
};

}  // namespace pantala::search
