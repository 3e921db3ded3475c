#include "plan/compiled_step.h"

#include "ir/graph_data.h"
#include "ir/leaves.h"

namespace pantala::plan {

std::vector<CompiledLeaf> leaves_of(const Graph& graph) {
  std::vector<CompiledLeaf> leaves;
  for (const Leaf& leaf : graph.leaves()) {
    CompiledLeaf described{leaf.kind, leaf.name, leaf.value.type()};
    const ir::Node& node = graph.data()->node(leaf.value.id().node);
    if (leaf.kind == LeafKind::scalar)
      described.init = init::constant(ir::attributes<op::Scalar>(node).value);
    if (leaf.kind == LeafKind::parameter || leaf.kind == LeafKind::state)
      described.init = ir::attributes<op::StoredAttrs>(node).init;
    leaves.push_back(std::move(described));
  }
  return leaves;
}

std::int64_t bytes_in_store(const std::vector<CompiledLeaf>& leaves) {
  std::int64_t bytes = 0;
  for (const CompiledLeaf& leaf : leaves)
    if (leaf.kind == LeafKind::parameter || leaf.kind == LeafKind::state)
      bytes += leaf.type.shape.numel() * dtype_bytes(leaf.type.dtype);
  return bytes;
}

}  // namespace pantala::plan
