#include "schedule/append.h"

#include "ops/table.h"

namespace pantala::schedule {

Tensor converted(const Tensor& x, DType to) {
  return x.dtype() == to ? x : ops::apply("cast", {x}, {{"dtype", to}})[0];
}

void widen_halves(std::vector<Tensor>& inputs) {
  for (Tensor& x : inputs)
    if (x.dtype() == DType::f16 || x.dtype() == DType::bf16) x = converted(x, DType::f32);
}

std::vector<Tensor> append_converted(ir::GraphData& target, const ir::Node& node,
                                     const std::vector<Tensor>& inputs,
                                     const ir::AttrValues& attrs) {
  std::vector<Tensor> results = target.append(*node.op, inputs, attrs, node.where);
  for (std::size_t k = 0; k < results.size(); ++k)
    results[k] = converted(results[k], node.results[k].dtype);
  return results;
}

std::vector<Tensor> append_widened(ir::GraphData& target, const ir::Node& node,
                                   std::vector<Tensor> inputs) {
  widen_halves(inputs);
  return append_converted(target, node, inputs, node.attrs);
}

}  // namespace pantala::schedule
