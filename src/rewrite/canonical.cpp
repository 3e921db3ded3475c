#include "rewrite/canonical.h"

#include <fmt/format.h>

#include <cmath>

#include "ir/leaves.h"
#include "ops/face.h"
#include "ops/slicing.h"

namespace pantala::rewrite {

namespace {

constexpr std::size_t kRounds = 32;
// How many nodes there may be for one of the graph: what is left then is equal, but may not be the
// shortest.
constexpr std::size_t kGrowth = 8;

// Nodes are counted, those that only move elements for less. Of forms that are equally long the one
// that reads less wins: what several nodes share can be left by one after the other only if each of
// them gains.
double count_of(const Joint& joint, NodeId node) {
  constexpr double kReading = 1e-4;
  const ir::OpDef* op = joint.op(node);
  if (op == nullptr || ir::leaf_kind(*op)) return 0.01;
  if (ops::is<op::Constant>(*op)) return 0.1;
  if (ops::is<op::Data>(*op)) return 0.2;
  if (ops::is<op::Reshape, op::Permute, op::BroadcastTo, op::Slice, op::Concat>(*op)) return 0.25;
  double count = 1;
  for (std::uint32_t k = 0; k < joint.equal().arity(node); ++k) {
    const auto elements = joint.type(joint.equal().child(node, k)).shape.numel();
    count += kReading * std::log2(2.0 + static_cast<double>(elements));
  }
  return count;
}

// With all leaves as outputs behind its own: what enters from outside stays, also where nothing
// needs it any more.
Graph with_leaves(const Graph& graph) {
  auto outputs = graph.outputs();
  for (const Leaf& leaf : graph.leaves())
    outputs.emplace_back(fmt::format("\x01leaf {}", outputs.size()), leaf.value);
  return graph.with_outputs(outputs);
}
Graph without_leaves(Graph graph, std::size_t outputs) {
  auto own = graph.outputs();
  own.resize(outputs);
  return std::move(graph).with_outputs(own);
}

}  // namespace

Canonical canonical_form(const Graph& graph, std::vector<Rule> rules) {
  const egraph::Limits limits{.rounds = kRounds, .nodes = 1000 + kGrowth * graph.size()};
  const Saturation all(with_leaves(graph), std::move(rules), limits);
  if (all.applications().empty()) return {graph, uses_of(all, nullptr)};
  std::vector<double> counts;  // by node
  for (std::size_t k = 0; k < all.joint().equal().node_ids(); ++k)
    counts.push_back(count_of(all.joint(), NodeId(k)));
  const Selection shortest = improved(all.joint(), given_selection(all.joint()),
                                      [&](NodeId node) { return counts[node.index()]; });
  return {without_leaves(to_graph(all.joint(), shortest), graph.outputs().size()),
          uses_of(all, &shortest)};
}

}  // namespace pantala::rewrite
