// Lowering: composites become their definitions until only what kernels exist for is left.
#include <map>

#include "ir/graph_data.h"
#include "ops/expansion.h"
#include "ops/table.h"
#include "schedule/archetype.h"
#include "schedule/schedule.h"

namespace pantala::schedule {

namespace {

std::vector<Tensor> append(const ArchetypeTable& archetypes, ir::GraphData& target,
                           const ir::Node& node, const std::vector<Tensor>& inputs) {
  const ir::GraphData::Scope scope(target, node.where);
  const Archetype* archetype = archetypes.find(*node.op);
  if (archetype != nullptr && archetype->append != nullptr)
    return archetype->append(target, node, inputs);
  return target.append(*node.op, inputs, node.attrs, node.where);
}

// Two leaves may take each other's value: the new value of a leaf is never another leaf itself.
Tensor copied_leaf(const Tensor& value) {
  const ir::Node& node = value.graph()->node(value.id().node);
  if (!ir::leaf_kind(*node.op)) return value;
  return ops::apply("reshape", {value}, {{"shape", value.shape().vec()}})[0];
}

}  // namespace

Graph lower(const Graph& graph, const ArchetypeTable& archetypes) {
  Graph lowered;
  std::vector<ValueId> wanted;
  for (const auto& [name, value] : graph.outputs()) wanted.push_back(value.id());
  for (const auto& [leaf, value] : graph.updates()) {
    wanted.push_back(leaf.id());
    wanted.push_back(value.id());
  }
  std::map<ValueId, Tensor> known;
  ops::Expander(
      lowered.data(), [&](const ir::OpDef& op) { return archetypes.keeps(op); },
      [&](const ir::Node& node, const std::vector<Tensor>& inputs) {
        return append(archetypes, *lowered.data(), node, inputs);
      })
      .copy(*graph.data(), wanted, known);
  for (const auto& [name, value] : graph.outputs()) lowered.output(name, known.at(value.id()));
  for (const auto& [leaf, value] : graph.updates())
    lowered.update(known.at(leaf.id()), copied_leaf(known.at(value.id())));
  return lowered;
}

}  // namespace pantala::schedule
