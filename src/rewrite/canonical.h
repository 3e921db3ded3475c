// The canonical form of a graph: of everything that a table of rules says is equal, what takes the
// fewest nodes. Rules that make patterns alike (a factor moved, a division written as a product)
// cost nothing where nothing comes of it: a node is exchanged only for fewer.
#pragma once

#include <vector>

#include "rewrite/extraction.h"
#include "rewrite/saturation.h"

namespace pantala::rewrite {

struct Canonical {
  Graph graph;
  std::vector<RuleUse> rules;  // that fit
};

// Leaves, outputs and updates keep their names and order. The time grows as the graph does.
Canonical canonical_form(const Graph& graph, std::vector<Rule> rules);

}  // namespace pantala::rewrite
