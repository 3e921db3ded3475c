// One loop over the op table: nodes between the requested values and the loss are visited from the back, each turning the gradients of its
// results into gradients of its inputs. An op without a gradient rule is expanded on the spot, and its definition is differentiated by
// the same loop.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "ir/graph_data.h"
#include "ops/table.h"
#include "pantala/autodiff.h"
#include "pantala/error.h"
#include "pantala/ops.h"

namespace pantala {

namespace {

using ir::GraphData;
using ir::Node;

// Sums of contributions per value, each kept in the order of arrival.
class Contributions {
 public:
  void add(ValueId id, const Tensor& gradient) { lists_[id].push_back(gradient); }
  bool has(ValueId id) const { return lists_.contains(id); }
  Tensor total(ValueId id) {
    std::vector<Tensor>& list = lists_.at(id);
    if (list.size() > 1) list = {add_n(list)};
    return list[0];
  }

 private:
  std::map<ValueId, std::vector<Tensor>> lists_;
};

// A region to be differentiated: nodes of `source`, whose values stand in the target graph under `in_target`.
struct Region {
  const GraphData& source;
  std::function<Tensor(ValueId)> in_target;
  std::set<ValueId> roots;            // values whose gradients are wanted
  std::vector<bool> leads_from_root;  // per node: some input path starts at a root
};

bool is_differentiable_edge(const Node& node, int input) { return !node.op->is_index(input); }

// Marks the nodes that are reached from the roots over differentiable edges.
void mark_descendants(Region& region, const std::vector<std::uint32_t>& nodes) {
  region.leads_from_root.assign(region.source.nodes().size(), false);
  for (const std::uint32_t id : nodes) {
    const Node& node = region.source.node(id);
    for (int k = 0; k < static_cast<int>(node.inputs.size()); ++k) {
      const ValueId input = node.inputs[k];
      if (is_differentiable_edge(node, k) && (region.roots.contains(input) || region.leads_from_root[input.node])) region.leads_from_root[id] = true;
    }
  }
}

bool wanted(const Region& region, const Node& node, int k) {
  const ValueId input = node.inputs[k];
  return is_differentiable_edge(node, k) && (region.roots.contains(input) || region.leads_from_root[input.node]);
}

std::string describe_path(const Region& region, std::uint32_t id, const std::vector<std::uint32_t>& to_loss);

class Sweep {
 public:
  // Runs over `nodes` (ascending ids) from the back; `gradients` holds the seeds.
  static void run(Region& region, const std::vector<std::uint32_t>& nodes, Contributions& gradients) {
    mark_descendants(region, nodes);
    for (auto id = nodes.rbegin(); id != nodes.rend(); ++id)
      if (region.leads_from_root[*id]) visit(region, *id, nodes, gradients);
  }

 private:
  static void visit(Region& region, std::uint32_t id, const std::vector<std::uint32_t>& nodes, Contributions& gradients) {
    const Node& node = region.source.node(id);
    std::vector<Tensor> upstream(node.results.size()), results;
    bool reached = false;
    for (std::uint32_t k = 0; k < node.results.size(); ++k) {
      results.push_back(region.in_target({id, k}));
      if (!gradients.has({id, k})) continue;
      upstream[k] = gradients.total({id, k});
      reached = true;
    }
    if (!reached) return;
    std::vector<Tensor> inputs;
    std::vector<bool> wants;
    for (int k = 0; k < static_cast<int>(node.inputs.size()); ++k) {
      inputs.push_back(region.in_target(node.inputs[k]));
      wants.push_back(wanted(region, node, k));
    }
    GraphData::Scope scope(*inputs[0].graph(), node.where);
    const std::vector<Tensor> found = vjp(region, id, nodes, inputs, results, upstream, wants);
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      if (!found[k].valid()) continue;
      if (found[k].type() != inputs[k].type())
        throw InternalError(fmt::format("{}: the gradient of input {} is {} instead of {}", node.op->name, k, found[k].type().str(), inputs[k].type().str()));
      gradients.add(node.inputs[k], found[k]);
    }
  }

  static std::vector<Tensor> vjp(const Region& region, std::uint32_t id, const std::vector<std::uint32_t>& nodes, const std::vector<Tensor>& inputs,
                                 const std::vector<Tensor>& results, const std::vector<Tensor>& upstream, const std::vector<bool>& wants) {
    const Node& node = region.source.node(id);
    if (!node.op->differentiable())
      ir::throw_type_error(node.op->name, node.where, "has no derivative, but lies on the path " + describe_path(region, id, nodes));
    bool rule_applies = node.op->grad != nullptr;
    for (std::size_t k = static_cast<std::size_t>(node.op->grad_results); k < upstream.size(); ++k) rule_applies &= !upstream[k].valid();
    if (!rule_applies) return through_definition(node, inputs, upstream, wants);
    ir::GradContext context(inputs, results, upstream, wants);
    try {
      node.op->grad(context, node.attrs);
    } catch (const TypeError& error) {
      ir::throw_type_error(node.op->name, node.where, std::string(error.what()) + ", but lies on the path " + describe_path(region, id, nodes));
    }
    return context.gradients();
  }

  // Differentiates the definition of a composite, built in the target graph itself.
  static std::vector<Tensor> through_definition(const Node& node, const std::vector<Tensor>& inputs, const std::vector<Tensor>& upstream, const std::vector<bool>& wants) {
    const std::vector<Tensor> outputs = ops::expand(*node.op, node.attrs, inputs, node.where);
    GraphData& graph = *inputs[0].graph();
    Region inner{graph, [&](ValueId id) { return graph.tensor(id); }, {}, {}};
    std::set<ValueId> boundary;
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      boundary.insert(inputs[k].id());
      if (wants[k]) inner.roots.insert(inputs[k].id());
    }
    Contributions gradients;
    for (std::size_t k = 0; k < outputs.size(); ++k)
      if (upstream[k].valid()) gradients.add(outputs[k].id(), upstream[k]);
    Sweep::run(inner, cone(graph, outputs, boundary), gradients);
    // An input given twice is one value of the definition: its gradient is handed out once.
    std::vector<Tensor> found(inputs.size());
    std::set<ValueId> given;
    for (std::size_t k = 0; k < inputs.size(); ++k)
      if (wants[k] && gradients.has(inputs[k].id()) && given.insert(inputs[k].id()).second) found[k] = gradients.total(inputs[k].id());
    return found;
  }

 public:
  // The nodes that lie between the outputs and the boundary, ascending.
  static std::vector<std::uint32_t> cone(const GraphData& graph, const std::vector<Tensor>& outputs, const std::set<ValueId>& boundary) {
    std::set<std::uint32_t> nodes;
    std::vector<ValueId> open;
    for (const Tensor& t : outputs) open.push_back(t.id());
    while (!open.empty()) {
      const ValueId id = open.back();
      open.pop_back();
      if (boundary.contains(id) || !nodes.insert(id.node).second) continue;
      for (const ValueId& input : graph.node(id.node).inputs) open.push_back(input);
    }
    return {nodes.begin(), nodes.end()};
  }
};

std::string node_name(const GraphData& graph, std::uint32_t id) {
  const Node& node = graph.node(id);
  return node.op->leaf ? graph.leaf_name(id) : node.op->name;
}

// "w -> mod -> sum": one way from a root over the node to the loss.
std::string describe_path(const Region& region, std::uint32_t id, const std::vector<std::uint32_t>& to_loss) {
  std::vector<std::string> path{node_name(region.source, id)};
  for (std::uint32_t at = id;;) {
    const Node& node = region.source.node(at);
    int k = 0;
    while (k < static_cast<int>(node.inputs.size()) && !wanted(region, node, k)) ++k;
    if (k == static_cast<int>(node.inputs.size())) break;
    at = node.inputs[k].node;
    path.insert(path.begin(), node_name(region.source, at));
    if (region.roots.contains(node.inputs[k])) break;
  }
  std::uint32_t at = id;
  for (const std::uint32_t next : to_loss) {
    if (next <= at || !region.leads_from_root[next]) continue;
    const std::vector<ValueId>& inputs = region.source.node(next).inputs;
    if (std::none_of(inputs.begin(), inputs.end(), [&](const ValueId& v) { return v.node == at; })) continue;
    path.push_back(node_name(region.source, next));
    at = next;
  }
  std::string text = path[0];
  for (std::size_t k = 1; k < path.size(); ++k) text += " -> " + path[k];
  return text;
}

// Copies the graph node by node; stop_gradient becomes its input unless it is to be kept.
std::vector<std::vector<ValueId>> copy_nodes(const GraphData& source, GraphData& target, bool keep_stop_gradients) {
  std::vector<std::vector<ValueId>> map;
  for (const Node& node : source.nodes()) {
    std::vector<Tensor> inputs;
    for (const ValueId& id : node.inputs) inputs.push_back(target.tensor(map[id.node][id.result]));
    if (node.op->name == "stop_gradient" && !keep_stop_gradients) {
      map.push_back({inputs[0].id()});
      continue;
    }
    std::vector<ValueId> ids;
    for (const Tensor& t : target.append(*node.op, inputs, node.attrs, node.where)) ids.push_back(t.id());
    map.push_back(std::move(ids));
  }
  for (const auto& [name, id] : source.outputs) target.outputs.emplace_back(name, map[id.node][id.result]);
  for (const auto& [leaf, id] : source.updates) target.updates.emplace_back(map[leaf][0].node, map[id.node][id.result]);
  return map;
}

void check_arguments(const Graph& graph, const Tensor& loss, const std::vector<Tensor>& wrt, const Tensor& seed) {
  const auto check = [&](const Tensor& t, std::string_view what) {
    if (!t.valid() || t.graph() != graph.data()) throw TypeError(fmt::format("differentiate: {} is not a value of the graph", what));
    if (!is_float(t.dtype())) throw TypeError(fmt::format("differentiate: {} must be a float value, got {}", what, t.type().str()));
  };
  check(loss, "the loss");
  if (loss.rank() != 0) throw TypeError(fmt::format("differentiate: the loss must be a scalar, got {}", loss.type().str()));
  for (std::size_t k = 0; k < wrt.size(); ++k) check(wrt[k], fmt::format("wrt[{}]", k));
  if (!seed.valid()) return;
  check(seed, "the seed");
  if (seed.type() != loss.type()) throw TypeError(fmt::format("differentiate: the seed must be {}, got {}", loss.type().str(), seed.type().str()));
}

}  // namespace

Tensor Gradients::at(const Tensor& old) const {
  const ValueId id = old.id();
  if (id.node >= values.size() || id.result >= values[id.node].size()) throw TypeError("this value is not of the graph that was differentiated");
  return graph.value(values[id.node][id.result]);
}

Gradients differentiate(const Graph& graph, const Tensor& loss, const std::vector<Tensor>& wrt, const DifferentiateOptions& options) {
  check_arguments(graph, loss, wrt, options.seed);
  Gradients result;
  GraphData& target = *result.graph.data();
  result.values = copy_nodes(*graph.data(), target, options.keep_stop_gradients);
  Region region{*graph.data(), [&](ValueId id) { return target.tensor(result.values[id.node][id.result]); }, {}, {}};
  for (const Tensor& t : wrt) region.roots.insert(t.id());
  Contributions gradients;
  gradients.add(loss.id(), options.seed.valid() ? result.at(options.seed) : ones_like(result.at(loss)));
  Sweep::run(region, Sweep::cone(*graph.data(), {loss}, {}), gradients);
  for (const Tensor& t : wrt) result.gradients.push_back(gradients.has(t.id()) ? gradients.total(t.id()) : zeros_like(result.at(t)));
  return result;
}

}  // namespace pantala
