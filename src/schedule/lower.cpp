// Lowering: composites become their definitions until only what kernels exist for is left.
#include <map>
#include <set>

#include "ir/graph_data.h"
#include "ops/table.h"
#include "schedule/emitter.h"
#include "schedule/lowering.h"
#include "schedule/schedule.h"

namespace pantala::schedule {

namespace {

using Results = std::vector<Tensor>;

class Lowering {
 public:
  explicit Lowering(std::shared_ptr<ir::GraphData> target) : target_(std::move(target)) {}

  // Copies what the wanted values need into the target; `known` maps values that stand there.
  void copy(ir::GraphData& source, const std::vector<ValueId>& wanted,
            std::map<ValueId, Tensor>& known) {
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
      const Results results = has_kernel(*node.op)
                                  ? target_->append(*node.op, inputs, node.attrs, node.where)
                                  : define(node, inputs);
      for (std::uint32_t k = 0; k < results.size(); ++k) known.emplace(ValueId{id, k}, results[k]);
    }
  }

 private:
  // A definition is built in a graph of its own, then copied in turn.
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

Graph lower(const Graph& graph) {
  Graph lowered;
  std::vector<ValueId> wanted;
  for (const auto& [name, value] : graph.outputs()) wanted.push_back(value.id());
  for (const auto& [leaf, value] : graph.updates()) {
    wanted.push_back(leaf.id());
    wanted.push_back(value.id());
  }
  std::map<ValueId, Tensor> known;
  Lowering(lowered.data()).copy(*graph.data(), wanted, known);
  for (const auto& [name, value] : graph.outputs()) lowered.output(name, known.at(value.id()));
  for (const auto& [leaf, value] : graph.updates())
    lowered.update(known.at(leaf.id()), known.at(value.id()));
  return lowered;
}

}  // namespace pantala::schedule
