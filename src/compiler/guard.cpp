#include "compiler/guard.h"

#include <algorithm>

#include "ir/graph_data.h"
#include "ops/arithmetic.h"
#include "ops/face.h"
#include "pantala/error.h"
#include "pantala/ops.h"

namespace pantala::compiler {

namespace {

bool is_counter(const ir::Node& node) {
  const Type& type = node.results[0];
  return ir::leaf_kind(*node.op) == LeafKind::state && type.shape.rank() == 0 &&
         (type.dtype == DType::f64 || is_integer(type.dtype));
}

bool is_host_op(const ir::OpDef& op) {
  return op.scalar != nullptr || ops::is<op::Cast, op::AddN>(op);
}

// Scalars that depend on hyper-parameters, counters and constants alone, and on one of the first
// two at least: what is made of constants alone is computed by the device. A counter whose next
// value is neither one of these nor a constant is the device's; calling too few values the host's
// is only slower.
std::vector<bool> host_values(const ir::GraphData& graph) {
  const std::size_t count = graph.nodes().size();
  std::vector<bool> host(count), refused(count);
  const auto is_constant = [&](std::uint32_t id) {
    return ir::splat_value(graph.node(id)).has_value();
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (std::uint32_t id = 0; id < count; ++id) {
      const ir::Node& node = graph.node(id);
      const bool scalar = node.results.size() == 1 && node.results[0].shape.rank() == 0;
      const bool known = ir::leaf_kind(*node.op) == LeafKind::scalar || is_counter(node);
      const auto is_host = [&](const ValueId& input) { return host[input.node]; };
      const auto is_number = [&](const ValueId& input) {
        return host[input.node] || is_constant(input.node);
      };
      host[id] = scalar && !refused[id] &&
                 (known || (is_host_op(*node.op) && std::ranges::any_of(node.inputs, is_host) &&
                            std::ranges::all_of(node.inputs, is_number)));
    }
    for (const auto& [leaf, value] : graph.updates)
      if (host[leaf] && !host[value.node] && !is_constant(value.node))
        refused[leaf] = changed = true;
  }
  return host;
}

// The largest magnitude is finite if all are; a sum of them could overflow.
Tensor all_finite(const Tensor& x) { return is_finite(x.rank() == 0 ? x : amax(abs(x))); }
// A gradient whose squares have no sum is no use though each of its numbers is finite: it makes
// second moments infinite, which stops their weights for good, and a clipped one is zero.
Tensor norm_is_finite(const Tensor& gradient) { return is_finite(sum(square(gradient))); }

}  // namespace

Graph guard_updates(Graph graph, NonFiniteGuard guard, const Tensor& loss,
                    const std::vector<Tensor>& gradients) {
  if (guard == NonFiniteGuard::none) return graph;
  for (const auto& [name, value] : graph.outputs())
    if (name == kFiniteOutput)
      throw TypeError(
          "the output name 'finite' belongs to the guard against numbers that are not finite; "
          "rename the output, or compile with non_finite = none");
  Tensor finite = all_finite(loss);
  if (guard == NonFiniteGuard::gradients)
    for (const Tensor& gradient : gradients)
      if (gradient.numel() > 0) finite = logical_and(finite, norm_is_finite(gradient));
  const std::vector<bool> host = host_values(*graph.data());
  for (auto& [leaf, value] : graph.data()->updates)
    if (!host[leaf]) value = where(finite, graph.value(value), graph.value({leaf, 0})).id();
  graph.output(kFiniteOutput, finite);
  return graph;
}

}  // namespace pantala::compiler
