// Extraction: from the classes of a joint graph back to a graph. A selection names a node for every
// class that is needed; it begins with the graph as it was given and is improved step by step, each
// step by the exact change of the whole cost, in which a class that several read is paid once.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "rewrite/joint.h"
#include "rewrite/rule.h"

namespace pantala::rewrite {

class Saturation;

// What became of a rule.
struct RuleUse {
  std::string name;
  std::int64_t matches = 0, fired = 0;
  std::int64_t reached = 0;  // nodes of the chosen graph that it made
  double milliseconds = 0;
  bool stays_finite = false;  // as the rule says
};

// A node by class; none: nothing needs the class. Acyclic.
struct Selection {
  std::vector<NodeId> nodes;  // by class id, under the name that find() gives
};

// What it costs to compute a node from its operands; above 0.
using NodeCost = std::function<double(NodeId)>;

// The graph as it was given.
Selection given_selection(const Joint& joint);
// The graph as it was given, with those of the applications that are wanted, in their order. A
// class is computed by the first that is wanted for it, which a later one may refine; one by which
// a class would need itself is left out.
Selection selection_with(const Joint& joint, std::span<const Application> applications,
                         const std::vector<bool>& wanted);
// The rules that fit somewhere; without a selection none of them reached anything.
std::vector<RuleUse> uses_of(const Saturation& all, const Selection* selection);
// The sum over all nodes that outputs and updates need.
double cost_of(const Joint& joint, const Selection& selection, const NodeCost& cost);
// Exchanges nodes of classes as long as the sum becomes smaller, at most `passes` times over all
// classes. The result is never dearer.
Selection improved(const Joint& joint, const Selection& from, const NodeCost& cost, int passes = 4);
// The selected nodes, with outputs and updates of the graph that was given. Nodes stand where they
// stood, and new ones where the nodes stood in whose place they came.
Graph to_graph(const Joint& joint, const Selection& selection);

}  // namespace pantala::rewrite
