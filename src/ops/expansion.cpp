#include "ops/expansion.h"

#include <fmt/format.h>

#include "ops/table.h"
#include "pantala/error.h"

namespace pantala::ops {

using ir::Rewriter;

Definition::Definition(const ir::Node& node, std::span<const Tensor> given) {
  if (node.op->expand == nullptr)
    throw InternalError(fmt::format("'{}' has no definition to expand", node.op->name));
  const ir::InferContext names(*node.op, {}, {});
  for (std::size_t k = 0; k < given.size(); ++k)
    inputs.push_back(
        graph.input(names.name_of(static_cast<int>(k)), given[k].shape(), given[k].dtype()));
  results = expand(*node.op, node.attrs, inputs, node.where);
}

namespace {

Rewriter::Results write_definition(Rewriter& into, const ir::Node& node,
                                   const std::vector<Tensor>& inputs) {
  const Definition definition(node, inputs);
  Rewriter rewriter(*definition.graph.data(), into.target(), into.rule());
  for (std::size_t k = 0; k < inputs.size(); ++k)
    rewriter.set(definition.inputs[k].id(), inputs[k]);
  std::vector<ValueId> wanted;
  for (const Tensor& result : definition.results) wanted.push_back(result.id());
  rewriter.copy(wanted);
  Rewriter::Results results;
  for (const ValueId& id : wanted) results.push_back(rewriter.at(id));
  return results;
}

}  // namespace

Rewriter::Rule expand_unless(KeepsOp keeps, Rewriter::Rule kept) {
  return [keeps = std::move(keeps), kept = std::move(kept)](
             Rewriter& into, const ir::Node& node,
             const std::vector<Tensor>& inputs) -> Rewriter::Results {
    if (!keeps(*node.op)) return write_definition(into, node, inputs);
    return kept ? kept(into, node, inputs) : Rewriter::Results{};
  };
}

}  // namespace pantala::ops
