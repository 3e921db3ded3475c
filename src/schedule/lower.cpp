// Lowering: composites become their definitions until only what kernels exist for is left.
#include <algorithm>
#include <numeric>

#include "ops/expansion.h"
#include "ops/table.h"
#include "schedule/emitter.h"
#include "schedule/lowering.h"
#include "schedule/schedule.h"

namespace pantala::schedule {

namespace {

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

// Products are computed in f32 or f64: halves are converted on the way in and out.
std::vector<Tensor> write_product(ir::GraphData& target, const ir::Node& node,
                                  std::vector<Tensor> inputs) {
  const auto is_half = [](DType t) { return t == DType::f16 || t == DType::bf16; };
  const auto converted = [](const Tensor& x, DType to) {
    return x.dtype() == to ? x : ops::apply("cast", {x}, {{"dtype", to}})[0];
  };
  ir::AttrValues attrs = node.attrs;
  for (Tensor& x : inputs)
    if (is_half(x.dtype())) x = converted(x, DType::f32);
  if (node.op->name == "attention_cached") inputs[3] = converted(inputs[3], DType::i64);
  if (archetype(*node.op) == Archetype::contract) {
    for (Tensor& x : inputs) x = in_memory(x);
    order_operands(inputs, attrs);
  }
  std::vector<Tensor> results = target.append(*node.op, inputs, attrs, node.where);
  for (std::size_t k = 0; k < results.size(); ++k)
    results[k] = converted(results[k], node.results[k].dtype);
  return results;
}

// How a node that has a kernel is written; an empty list: as it is.
std::vector<Tensor> write_kept(ir::Rewriter& into, const ir::Node& node,
                               const std::vector<Tensor>& inputs) {
  const Archetype kind = archetype(*node.op);
  const bool product =
      kind == Archetype::contract || kind == Archetype::convolution || kind == Archetype::attention;
  return product ? write_product(*into.target(), node, inputs) : std::vector<Tensor>{};
}

// Two leaves may take each other's value: the new value of a leaf is never another leaf itself.
Tensor copied_leaf(const Tensor& value) {
  const ir::Node& node = value.graph()->node(value.id().node);
  if (!ir::leaf_kind(*node.op)) return value;
  return ops::apply("reshape", {value}, {{"shape", value.shape().vec()}})[0];
}

}  // namespace

Graph lower(const Graph& graph) {
  Graph lowered;
  ir::Rewriter rewriter(*graph.data(), lowered.data(), ops::expand_unless(has_kernel, write_kept));
  rewriter.copy_needed();
  rewriter.write_outputs();
  for (const auto& [leaf, value] : graph.updates())
    lowered.update(rewriter.at(leaf.id()), copied_leaf(rewriter.at(value.id())));
  return lowered;
}

}  // namespace pantala::schedule
