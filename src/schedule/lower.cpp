// Lowering: composites become their definitions until only what kernels exist for is left.
#include "ops/expansion.h"
#include "ops/table.h"
#include "schedule/archetype.h"
#include "schedule/schedule.h"

namespace pantala::schedule {

namespace {

// Two leaves may take each other's value: the new value of a leaf is never another leaf itself.
Tensor copied_leaf(const Tensor& value) {
  const ir::Node& node = value.graph()->node(value.id().node);
  if (!ir::leaf_kind(*node.op)) return value;
  return ops::apply("reshape", {value}, {{"shape", value.shape().vec()}})[0];
}

}  // namespace

Graph lower(const Graph& graph, const ArchetypeTable& archetypes) {
  using Results = ir::Rewriter::Results;
  const auto keeps = [&](const ir::OpDef& op) { return archetypes.keeps(op); };
  const auto write = [&](ir::Rewriter& into, const ir::Node& node,
                         const std::vector<Tensor>& inputs) {
    const Archetype* archetype = archetypes.find(*node.op);
    const bool as_it_is = archetype == nullptr || archetype->append == nullptr;
    return as_it_is ? Results{} : archetype->append(*into.target(), node, inputs);
  };
  Graph lowered;
  ir::Rewriter rewriter(*graph.data(), lowered.data(), ops::expand_unless(keeps, write));
  rewriter.copy_needed();
  rewriter.write_outputs();
  for (const auto& [leaf, value] : graph.updates())
    lowered.update(rewriter.at(leaf.id()), copied_leaf(rewriter.at(value.id())));
  return lowered;
}

}  // namespace pantala::schedule
