#include "ref/flatten.h"

#include <map>

#include "ir/graph_data.h"
#include "ops/table.h"

namespace pantala::ref {

namespace {

using Results = std::vector<Tensor>;

bool is_direct(const ir::OpDef& op) {
  return op.leaf || op.eval != nullptr || op.scalar != nullptr;
}

// Copies nodes into `target`, expanding composites. Definitions are built in a scratch graph of
// their own, then copied in turn.
class Flattener {
 public:
  explicit Flattener(std::shared_ptr<ir::GraphData> target) : target_(std::move(target)) {}

  // Copies what the wanted values need; `known` maps nodes whose results stand already (the inputs
  // of a definition).
  void copy(ir::GraphData& source, const std::vector<ValueId>& wanted,
            std::map<ValueId, Tensor>& known) {
    std::vector<bool> needed(source.nodes().size());
    for (const ValueId& id : wanted) needed[id.node] = !known.contains(id) || needed[id.node];
    for (auto id = static_cast<std::uint32_t>(needed.size()); id-- > 0;)
      if (needed[id])
        for (const ValueId& input : source.node(id).inputs)
          if (!known.contains(input)) needed[input.node] = true;
    for (std::uint32_t id = 0; id < needed.size(); ++id) {
      if (!needed[id]) continue;
      const ir::Node& node = source.node(id);
      std::vector<Tensor> inputs;
      for (const ValueId& input : node.inputs) inputs.push_back(known.at(input));
      const Results results = is_direct(*node.op)
                                  ? target_->append(*node.op, inputs, node.attrs, node.where)
                                  : define(node, inputs);
      for (std::uint32_t k = 0; k < results.size(); ++k) known.emplace(ValueId{id, k}, results[k]);
    }
  }

 private:
  Results define(const ir::Node& node, const std::vector<Tensor>& inputs) {
    Graph scratch;
    std::map<ValueId, Tensor> known;
    std::vector<Tensor> formal;
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      formal.push_back(scratch.input(std::to_string(k), inputs[k].shape(), inputs[k].dtype()));
      known.emplace(formal.back().id(), inputs[k]);
    }
    std::vector<ValueId> wanted;
    for (const Tensor& t : ops::expand(*node.op, node.attrs, formal, node.where))
      wanted.push_back(t.id());
    copy(*scratch.data(), wanted, known);
    Results results;
    for (const ValueId& id : wanted) results.push_back(known.at(id));
    return results;
  }

  std::shared_ptr<ir::GraphData> target_;
};

}  // namespace

Flat flatten(const Graph& graph, const std::vector<ValueId>& wanted) {
  Flat flat;
  std::map<ValueId, Tensor> known;
  Flattener(flat.graph.data()).copy(*graph.data(), wanted, known);
  for (const ValueId& id : wanted) flat.values.push_back(known.at(id).id());
  return flat;
}

}  // namespace pantala::ref
