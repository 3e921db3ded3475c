// The verifier: every invariant that the rest of the system relies on, checked from scratch.
#include <fmt/format.h>

#include <set>

#include "ir/graph_data.h"
#include "pantala/error.h"

namespace pantala {

namespace {
[[noreturn]] void broken(std::uint32_t node, const std::string& what) {
  throw InternalError(fmt::format("verify: node %{}: {}", node, what));
}

void check_value(const ir::GraphData& g, ValueId id, const std::string& user) {
  if (id.node >= g.nodes().size() || id.result >= g.node(id.node).results.size())
    throw InternalError(
        fmt::format("verify: {} reads %{}:{}, which does not exist", user, id.node, id.result));
}

void check_node(const ir::GraphData& g, std::uint32_t id) {
  const ir::Node& node = g.node(id);
  if (node.op == nullptr) broken(id, "has no op");
  if (node.op->sugar)
    broken(id, fmt::format("{} is sugar and must have been expanded", node.op->name));
  if (node.attrs.size() != node.op->attrs.size())
    broken(id, fmt::format("{} has {} attributes instead of {}", node.op->name, node.attrs.size(),
                           node.op->attrs.size()));
  for (std::size_t k = 0; k < node.attrs.size(); ++k)
    if (node.attrs[k].index() != node.op->attrs[k].default_value.index())
      broken(id, fmt::format("{}: attribute {} is not {}", node.op->name, node.op->attrs[k].name,
                             ir::kind_name(node.op->attrs[k].default_value)));
  const auto count = static_cast<int>(node.inputs.size());
  if (count < node.op->min_inputs() || count > node.op->max_inputs().value_or(count))
    broken(id, fmt::format("{} has {} inputs", node.op->name, count));
  std::vector<Type> types;
  for (const ValueId& input : node.inputs) {
    if (input.node >= id) broken(id, fmt::format("reads %{}, which is not before it", input.node));
    check_value(g, input, fmt::format("node %{}", id));
    types.push_back(g.type(input));
  }
  ir::InferContext context(*node.op, types, node.attrs);
  try {
    node.op->infer(context);
  } catch (const TypeError& error) {
    broken(id, fmt::format("{}: {}", node.op->name, error.what()));
  }
  if (context.results() != node.results)
    broken(id,
           fmt::format("{}: the shape rule gives other types than the node has", node.op->name));
  for (std::size_t k = 0; k < node.attrs.size(); ++k)
    if (!ir::equal_bits(context.attrs()[k], node.attrs[k]))
      broken(id, fmt::format("{}: attribute {} is not in its normal form", node.op->name,
                             node.op->attrs[k].name));
}

// Outputs have different names; parameters and states are updated once, with a value of their type.
void check_results(const ir::GraphData& g) {
  std::set<std::string> names;
  for (const auto& [name, id] : g.outputs()) {
    check_value(g, id, fmt::format("output '{}'", name));
    if (!names.insert(name).second)
      throw InternalError(fmt::format("verify: output '{}' is named twice", name));
  }
  std::set<std::uint32_t> updated;
  for (const auto& [leaf, id] : g.updates()) {
    check_value(g, {leaf, 0}, "an update");
    check_value(g, id, "an update");
    const std::optional<LeafKind> kind = ir::leaf_kind(*g.node(leaf).op);
    if (kind != LeafKind::parameter && kind != LeafKind::state)
      broken(leaf, "is updated, but is no parameter or state");
    if (g.type({leaf, 0}) != g.type(id)) broken(leaf, "is updated with another type");
    if (!updated.insert(leaf).second) broken(leaf, "is updated twice");
  }
}
}  // namespace

void verify(const Graph& graph) {
  const ir::GraphData& g = *graph.data();
  std::set<std::string> names;
  std::unordered_multimap<std::uint64_t, std::uint32_t> seen;
  for (std::uint32_t id = 0; id < g.nodes().size(); ++id) {
    check_node(g, id);
    if (g.node(id).op->leaf) {
      if (!names.insert(g.leaf_name(id)).second)
        broken(id, fmt::format("name '{}' is used twice", g.leaf_name(id)));
      if (g.find_leaf(g.leaf_name(id)) != id)
        broken(id, fmt::format("is not found by its name '{}'", g.leaf_name(id)));
    }
    const std::uint64_t hash = ir::hash_node(g.node(id));
    for (auto [it, end] = seen.equal_range(hash); it != end; ++it)
      if (ir::same_node(g.node(it->second), g.node(id)))
        broken(id, fmt::format("is the same as %{}", it->second));
    seen.emplace(hash, id);
  }
  check_results(g);
}

}  // namespace pantala
