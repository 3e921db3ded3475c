// Lowering: composites become their definitions until only what kernels exist for is left.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "ir/graph_data.h"
#include "ops/table.h"
#include "pantala/error.h"
#include "schedule/emitter.h"
#include "schedule/lowering.h"
#include "schedule/schedule.h"

namespace pantala::schedule {

namespace {

using Results = std::vector<Tensor>;

using ir::Ints;

// Whether the axes of a dense tensor are walked with one stride.
bool walks_as_one(const Shape& shape, const Ints& axes) {
  const Ints strides = shape.strides();
  std::int64_t stride = 0, extent = 1;
  for (std::size_t k = axes.size(); k-- > 0;) {
    const std::int64_t size = shape[static_cast<int>(axes[k])];
    if (size == 1) continue;
    if (extent > 1 && strides[static_cast<std::size_t>(axes[k])] != stride * extent) return false;
    if (extent == 1) stride = strides[static_cast<std::size_t>(axes[k])];
    extent *= size;
  }
  return true;
}

// A contraction reads each operand as [batch, m, k] with one stride for each of the three. An
// operand whose axes are mixed is put into that order first.
void order_operand(Tensor& x, Ints& batch, Ints& contracted) {
  Ints free;
  const auto in = [](const Ints& list, std::int64_t axis) {
    return std::find(list.begin(), list.end(), axis) != list.end();
  };
  for (int axis = 0; axis < x.rank(); ++axis)
    if (!in(batch, axis) && !in(contracted, axis)) free.push_back(axis);
  const Shape& shape = x.shape();
  int last = x.rank() - 1;
  while (last >= 0 && shape[last] == 1) --last;
  if (walks_as_one(shape, batch) && walks_as_one(shape, free) && walks_as_one(shape, contracted) &&
      !in(batch, last))
    return;
  Ints order = batch;
  order.insert(order.end(), free.begin(), free.end());
  order.insert(order.end(), contracted.begin(), contracted.end());
  x = ops::apply("permute", {x}, {{"axes", order}})[0];
  std::iota(batch.begin(), batch.end(), 0);
  std::iota(contracted.begin(), contracted.end(), std::ssize(batch) + std::ssize(free));
}

// Equal constants and numbers of the host are in no memory, and a product reads its operands there:
// it gets a value of its own.
Tensor in_memory(const Tensor& x) {
  if (x.rank() > 0 && !ir::splat_value(x.graph()->node(x.id().node))) return x;
  return ops::apply("reshape", {x}, {{"shape", x.shape().vec()}})[0];
}

void order_operands(std::vector<Tensor>& inputs, ir::AttrValues& attrs) {
  for (std::size_t side = 0; side < 2; ++side)
    order_operand(inputs[side], std::get<Ints>(attrs[side]), std::get<Ints>(attrs[2 + side]));
}

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
      const Results results = has_kernel(*node.op) ? append(node, inputs) : define(node, inputs);
      for (std::uint32_t k = 0; k < results.size(); ++k) known.emplace(ValueId{id, k}, results[k]);
    }
  }

 private:
  Results append(const ir::Node& node, std::vector<Tensor> inputs) {
    const ir::GraphData::Scope scope(*target_, node.where);
    ir::AttrValues attrs = node.attrs;
    const Archetype kind = archetype(*node.op);
    if (kind == Archetype::contract || kind == Archetype::convolution ||
        kind == Archetype::attention)
      return append_product(node, kind, std::move(inputs), std::move(attrs));
    return target_->append(*node.op, inputs, attrs, node.where);
  }

  // Products are computed in f32 or f64: halves are converted on the way in and out.
  Results append_product(const ir::Node& node, Archetype kind, std::vector<Tensor> inputs,
                         ir::AttrValues attrs) {
    const auto is_half = [](DType t) { return t == DType::f16 || t == DType::bf16; };
    const auto converted = [](const Tensor& x, DType to) {
      return x.dtype() == to ? x : ops::apply("cast", {x}, {{"dtype", to}})[0];
    };
    for (Tensor& x : inputs)
      if (is_half(x.dtype())) x = converted(x, DType::f32);
    if (node.op->name == "attention_cached") inputs[3] = converted(inputs[3], DType::i64);
    if (kind == Archetype::contract) {
      for (Tensor& x : inputs) x = in_memory(x);
      order_operands(inputs, attrs);
    }
    Results results = target_->append(*node.op, inputs, attrs, node.where);
    for (std::size_t k = 0; k < results.size(); ++k)
      results[k] = converted(results[k], node.results[k].dtype);
    return results;
  }

  // A definition is built in a graph of its own, then copied in turn.
  Results define(const ir::Node& node, const std::vector<Tensor>& inputs) {
    if (node.op->expand == nullptr)
      throw InternalError(fmt::format("schedule: no kernel for '{}'", node.op->name));
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

// Two leaves may take each other's value: the new value of a leaf is never another leaf itself.
Tensor copied_leaf(const Tensor& value) {
  const ir::Node& node = value.graph()->node(value.id().node);
  if (!ir::leaf_kind(*node.op)) return value;
  return ops::apply("reshape", {value}, {{"shape", value.shape().vec()}})[0];
}

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
    lowered.update(known.at(leaf.id()), copied_leaf(known.at(value.id())));
  return lowered;
}

}  // namespace pantala::schedule
