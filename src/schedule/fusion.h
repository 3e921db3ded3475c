// Fusion: pieces join the groups of what they read, where one kernel can compute both and no cycle
// between groups arises.
#pragma once

#include <vector>

#include "schedule/pieces.h"

namespace pantala::schedule {

// The pieces of each group, in the order of the graph.
using Members = std::vector<std::vector<PieceId>>;

struct Fused {
  Members groups;
  std::uint64_t searched = 0;  // groups that were looked at: how much work it was
};
Fused fuse(const Context& context, const Pieces& pieces, DecisionMemo& memo);

}  // namespace pantala::schedule
