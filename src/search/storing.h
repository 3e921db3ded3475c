// Store or compute again, the other way round: what several kernels compute because that is cheap
// by the scheduler's thresholds can be made once and lie in memory. The graph then reads it through
// `kept`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pantala/graph.h"
#include "search/weigh.h"

namespace pantala::search {

// Values that are alike, so that they are decided alike: results of one op and type that several
// kernels compute.
struct Repeated {
  std::string name;                  // "mul f32[8,256,1024]"
  std::vector<std::uint32_t> nodes;  // of the lowered graph
  std::int64_t bytes = 0;            // that would not be computed again
};

// Those whose readers compute them for themselves, with most bytes first. Of a chain of such values
// the last one.
std::vector<Repeated> computed_by_several(const Judged& judged);

// The graph with these nodes' values in memory.
Graph with_kept(const Graph& graph, const std::vector<std::uint32_t>& nodes);

// The graph with those kinds stored for which it pays. The graphs that are looked at have no more
// than `most_nodes` together.
Judged more_stored(Judged given, Scales& scales, std::size_t most_nodes,
                   std::vector<Repeated>& stored);

}  // namespace pantala::search
