#include "ops/expansion.h"

#include <fmt/format.h>

#include "ops/table.h"
#include "pantala/error.h"

namespace pantala::ops {

Expander::Expander(std::shared_ptr<ir::GraphData> target, Keeps keeps, Append append)
    : target_(std::move(target)), keeps_(std::move(keeps)), append_(std::move(append)) {
  if (!append_)
    append_ = [this](const ir::Node& node, const std::vector<Tensor>& inputs) {
      return target_->append(*node.op, inputs, node.attrs, node.where);
    };
}

void Expander::copy(ir::GraphData& source, const std::vector<ValueId>& wanted,
                    std::map<ValueId, Tensor>& known) const {
  std::vector<bool> needed(source.nodes().size());
  for (const ValueId& id : wanted)
    if (!known.contains(id)) needed[id.node] = true;
  for (auto id = static_cast<std::uint32_t>(needed.size()); id-- > 0;)
    if (needed[id])
      for (const ValueId& input : source.node(id).inputs)
        if (!known.contains(input)) needed[input.node] = true;
  for (std::uint32_t id = 0; id < needed.size(); ++id) {
    if (!needed[id]) continue;
    const ir::Node& node = source.node(id);
    std::vector<Tensor> inputs;
    for (const ValueId& input : node.inputs) inputs.push_back(known.at(input));
    const Results results = keeps_(*node.op) ? append_(node, inputs) : define(node, inputs);
    for (std::uint32_t k = 0; k < results.size(); ++k) known.emplace(ValueId{id, k}, results[k]);
  }
}

// A definition is built in a graph of its own, then copied in turn.
Expander::Results Expander::define(const ir::Node& node, const std::vector<Tensor>& inputs) const {
  if (node.op->expand == nullptr)
    throw InternalError(fmt::format("'{}' has no definition to expand", node.op->name));
  Graph scratch;
  std::map<ValueId, Tensor> known;
  std::vector<Tensor> formal;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    formal.push_back(scratch.input(std::to_string(k), inputs[k].shape(), inputs[k].dtype()));
    known.emplace(formal.back().id(), inputs[k]);
  }
  std::vector<ValueId> wanted;
  for (const Tensor& t : expand(*node.op, node.attrs, formal, node.where)) wanted.push_back(t.id());
  copy(*scratch.data(), wanted, known);
  Results results;
  for (const ValueId& id : wanted) results.push_back(known.at(id));
  return results;
}

}  // namespace pantala::ops
