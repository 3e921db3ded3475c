#include "ref/flatten.h"

#include "ops/expansion.h"

namespace pantala::ref {

namespace {

bool is_direct(const ir::OpDef& op) {
  return op.leaf || op.eval != nullptr || op.scalar != nullptr;
}

}  // namespace

Flat flatten(const Graph& graph, const std::vector<ValueId>& wanted) {
  Flat flat;
  ir::Rewriter rewriter(*graph.data(), flat.graph.data(), ops::expand_unless(is_direct));
  rewriter.copy(wanted);
  for (const ValueId& id : wanted) flat.values.push_back(rewriter.at(id).id());
  return flat;
}

}  // namespace pantala::ref
