// Which applications of rules are worth it, found one kind at a time by what the whole is expected
// to cost then.
#pragma once

#include <vector>

#include "rewrite/saturation.h"
#include "search/weigh.h"

namespace pantala::search {

// What a climb came to.
struct Climbed {
  Graph graph;
  std::vector<Trial> trials;
};

// From all applications, or from none where that is better. The graphs that are looked at have no
// more than `most_nodes` together.
Climbed best_applications(const rewrite::Saturation& all, Scales& scales, const Candidate& given,
                          std::size_t most_nodes);

}  // namespace pantala::search
