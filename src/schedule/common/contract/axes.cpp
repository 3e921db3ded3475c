#include "schedule/common/contract/axes.h"

#include <algorithm>
#include <numeric>

#include "ops/contract.h"
#include "ops/table.h"
#include "schedule/append.h"

namespace pantala::schedule {

using ir::Ints;

namespace {

bool contains(const Ints& list, std::int64_t axis) {
  return std::find(list.begin(), list.end(), axis) != list.end();
}

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

void order_operand(Tensor& x, Ints& batch, Ints& contracted) {
  const Ints free = axes_of_side(x.rank(), batch, contracted).free;
  const Shape& shape = x.shape();
  int last = x.rank() - 1;
  while (last >= 0 && shape[last] == 1) --last;
  if (walks_as_one(shape, batch) && walks_as_one(shape, free) && walks_as_one(shape, contracted) &&
      !contains(batch, last))
    return;
  Ints order = batch;
  order.insert(order.end(), free.begin(), free.end());
  order.insert(order.end(), contracted.begin(), contracted.end());
  x = ops::apply("permute", {x}, {{"axes", order}})[0];
  std::iota(batch.begin(), batch.end(), 0);
  std::iota(contracted.begin(), contracted.end(), std::ssize(batch) + std::ssize(free));
}

// Equal constants and numbers of the host are in no memory, and a contraction reads its operands
// there: it gets a value of its own.
Tensor in_memory(const Tensor& x) {
  if (x.rank() > 0 && !ir::splat_value(x.graph()->node(x.id().node))) return x;
  return ops::apply("reshape", {x}, {{"shape", x.shape().vec()}})[0];
}

}  // namespace

Axes axes_of_side(int rank, const Ints& batch, const Ints& contracted) {
  Axes axes{batch, {}, contracted};
  for (int axis = 0; axis < rank; ++axis)
    if (!contains(batch, axis) && !contains(contracted, axis)) axes.free.push_back(axis);
  return axes;
}

std::vector<Tensor> append_contraction(ir::GraphData& target, const ir::Node& node,
                                       std::vector<Tensor> inputs) {
  widen_halves(inputs);
  for (Tensor& x : inputs) x = in_memory(x);
  auto attrs = ir::attributes<op::Contract>(node);
  order_operand(inputs[0], attrs.batch_a, attrs.contract_a);
  order_operand(inputs[1], attrs.batch_b, attrs.contract_b);
  return append_converted(target, node, inputs, ir::to_values(attrs));
}

}  // namespace pantala::schedule
