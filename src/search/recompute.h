// Store or compute again: a value that is needed long after it was made can be made a second time
// for those that read it late, so that it does not lie in memory in between. The graph then has two
// nodes for it, which compute the same bits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pantala/graph.h"
#include "search/weigh.h"

namespace pantala::search {

// Values that are alike, so that they are decided alike: results of one op and type that lie in
// memory when most memory is taken, and are read after that.
struct Held {
  std::string name;                  // "mul f32[8,256,1024]"
  std::vector<std::uint32_t> nodes;  // of the lowered graph
  std::int64_t bytes = 0;            // of all of them together
  bool is_plain = true;              // whether they are computed element by element
};

// The largest first.
std::vector<Held> held_at_peak(const Judged& judged);

// The graph with the nodes computed again for all that stand behind the node `early` and read them,
// through whatever is not stored.
Graph computed_again(const Judged& judged, const std::vector<std::uint32_t>& nodes,
                     std::uint32_t early);

// The last node that is computed when most memory is taken.
std::uint32_t last_node_at_peak(const Judged& judged);

// What less_stored() may use up.
struct StoringBounds {
  std::size_t nodes = 0;    // of all graphs that are looked at
  double microseconds = 0;  // that the result may be expected to take
};
// The graph with those kinds computed again for which it pays.
Judged less_stored(Judged given, Scales& scales, const StoringBounds& most,
                   std::vector<Held>& again);

// The graph whose peak is at most `limit`, at the least expected time that was found; if there is
// none, the one with the smallest peak.
Judged within_limit(Judged given, Scales& scales, std::int64_t limit, std::vector<Held>& again);

}  // namespace pantala::search
