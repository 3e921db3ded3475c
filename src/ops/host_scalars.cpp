#include "ops/host_scalars.h"

#include <algorithm>

#include "ops/arithmetic.h"
#include "ops/face.h"

namespace pantala::ops {

using ir::Number;

namespace {

Number sum_of(const Number* terms, std::size_t count) {
  Number sum = terms[0];
  for (std::size_t k = 1; k < count; ++k) sum = sum + terms[k];
  return sum;
}

bool is_constant(const ir::GraphData& graph, ValueId id) {
  return ir::splat_value(graph.node(id.node)).has_value();
}

// Whether the host computes a node, given the answers for the nodes before it.
bool is_host_scalar(const ir::GraphData& graph, const ir::Node& node,
                    const std::vector<bool>& host) {
  if (node.results.size() != 1 || node.results[0].shape.rank() != 0) return false;
  if (const auto kind = ir::leaf_kind(*node.op)) return may_live_on_host(*kind, node.results[0]);
  const auto is_host = [&](ValueId input) { return host[input.node]; };
  const auto is_number = [&](ValueId input) { return is_host(input) || is_constant(graph, input); };
  return std::ranges::any_of(node.inputs, is_host) && std::ranges::all_of(node.inputs, is_number) &&
         host_function(node);
}

}  // namespace

bool may_live_on_host(LeafKind kind, const Type& type) {
  if (kind == LeafKind::scalar) return true;
  return kind == LeafKind::state && type.shape.rank() == 0 &&
         (type.dtype == DType::f64 || is_integer(type.dtype));
}

std::vector<bool> host_scalars(const ir::GraphData& graph) {
  const std::size_t count = graph.nodes().size();
  std::vector<bool> host(count), refused(count);
  for (bool changed = true; changed;) {
    changed = false;
    for (std::uint32_t id = 0; id < count; ++id)
      host[id] = !refused[id] && is_host_scalar(graph, graph.node(id), host);
    for (const auto& [leaf, value] : graph.updates())
      if (host[leaf] && !host[value.node] && !is_constant(graph, value))
        refused[leaf] = changed = true;
  }
  return host;
}

ir::ScalarFn host_function(const ir::Node& node) {
  if (node.op->scalar) return node.op->scalar(node.attrs);
  if (is<op::Cast>(node))
    return [dtype = node.results[0].dtype](const Number* x) { return to_dtype(*x, dtype); };
  if (is<op::AddN>(node))
    return [count = node.inputs.size()](const Number* x) { return sum_of(x, count); };
  if (is<op::StopGradient>(node)) return [](const Number* x) { return *x; };
  return {};
}

Number to_dtype(const Number& value, DType dtype) {
  if (is_float(dtype)) return value.real();
  if (value.integral) return Number::of(wrap_to(dtype, value.i));
  if (dtype == DType::boolean) return Number::of(value.f != 0);
  // Saturates, so that every float has an integer; NaN becomes 0.
  const double x = value.f;
  if (x != x) return Number::of(0);
  if (x >= 0x1p63) return Number::of(wrap_to(dtype, INT64_MAX));
  if (x <= -0x1p63) return Number::of(wrap_to(dtype, INT64_MIN));
  return Number::of(wrap_to(dtype, static_cast<std::int64_t>(x)));
}

}  // namespace pantala::ops
