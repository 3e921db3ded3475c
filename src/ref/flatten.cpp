#include "ref/flatten.h"

#include <map>

#include "ops/expansion.h"

namespace pantala::ref {

namespace {

bool is_direct(const ir::OpDef& op) {
  return op.leaf || op.eval != nullptr || op.scalar != nullptr;
}

}  // namespace

Flat flatten(const Graph& graph, const std::vector<ValueId>& wanted) {
  Flat flat;
  std::map<ValueId, Tensor> known;
  ops::Expander(flat.graph.data(), is_direct).copy(*graph.data(), wanted, known);
  for (const ValueId& id : wanted) flat.values.push_back(known.at(id).id());
  return flat;
}

}  // namespace pantala::ref
