// One loop over the op table: nodes between the requested values and the loss are visited from the
// back, each turning the gradients of its results into gradients of its inputs. An op without a
// gradient rule is expanded on the spot, and its definition is differentiated by the same loop.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "ir/graph_data.h"
#include "ops/arithmetic.h"
#include "ops/face.h"
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

// A region to be differentiated: nodes of `source`, whose values stand in the target graph under
// `in_target`.
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
      if (is_differentiable_edge(node, k) &&
          (region.roots.contains(input) || region.leads_from_root[input.node]))
        region.leads_from_root[id] = true;
    }
  }
}

bool wanted(const Region& region, const Node& node, int k) {
  const ValueId input = node.inputs[k];
  return is_differentiable_edge(node, k) &&
         (region.roots.contains(input) || region.leads_from_root[input.node]);
}

// Copies a graph node by node behind its first nodes, which stand for the `given` values;
// stop_gradient becomes its input unless it is to be kept. Returns, per node, its results in the
// target.
std::vector<std::vector<ValueId>> copy_nodes(const GraphData& source, GraphData& target,
                                             const std::vector<Tensor>& given,
                                             bool keep_stop_gradients) {
  std::vector<std::vector<ValueId>> map;
  for (const Tensor& t : given) map.push_back({t.id()});
  for (std::size_t k = given.size(); k < source.nodes().size(); ++k) {
    const Node& node = source.nodes()[k];
    std::vector<Tensor> inputs;
    for (const ValueId& id : node.inputs) inputs.push_back(target.tensor(map[id.node][id.result]));
    if (ops::is<op::StopGradient>(node) && !keep_stop_gradients) {
      map.push_back({inputs[0].id()});
      continue;
    }
    std::vector<ValueId> ids;
    for (const Tensor& t : target.append(*node.op, inputs, node.attrs, node.where))
      ids.push_back(t.id());
    map.push_back(std::move(ids));
  }
  return map;
}

std::string describe_path(const Region& region, std::uint32_t id,
                          const std::vector<std::uint32_t>& to_loss);

class Sweep {
 public:
  // Runs over `nodes` (ascending ids) from the back; `gradients` holds the seeds.
  static void run(Region& region, const std::vector<std::uint32_t>& nodes,
                  Contributions& gradients) {
    mark_descendants(region, nodes);
    for (auto id = nodes.rbegin(); id != nodes.rend(); ++id)
      if (region.leads_from_root[*id]) visit(region, *id, nodes, gradients);
  }

 private:
  static void visit(Region& region, std::uint32_t id, const std::vector<std::uint32_t>& nodes,
                    Contributions& gradients) {
    const Node& node = region.source.node(id);
    GraphData::Scope scope(*region.in_target({id, 0}).graph(), node.where);
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
    check_derivative(region, id, nodes);
    const std::vector<Tensor> found = vjp(node, inputs, results, upstream, wants);
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      if (!found[k].valid()) continue;
      if (found[k].type() != inputs[k].type())
        throw InternalError(fmt::format("{}: the gradient of input {} is {} instead of {}",
                                        node.op->name, k, found[k].type().str(),
                                        inputs[k].type().str()));
      gradients.add(node.inputs[k], found[k]);
    }
  }

  // An op without a derivative is an error here, and so is one that turned a number into an integer
  // or a bool which now comes back as a number.
  static void check_derivative(const Region& region, std::uint32_t id,
                               const std::vector<std::uint32_t>& nodes) {
    const auto integral_source = [&](std::uint32_t at) -> std::optional<std::uint32_t> {
      const Node& node = region.source.node(at);
      for (int k = 0; k < static_cast<int>(node.inputs.size()); ++k)
        if (wanted(region, node, k) && !is_float(region.source.type(node.inputs[k]).dtype))
          return node.inputs[k].node;
      return std::nullopt;
    };
    std::uint32_t culprit = id;
    while (const std::optional<std::uint32_t> source = integral_source(culprit)) culprit = *source;
    const Node& node = region.source.node(culprit);
    if (culprit != id || !node.op->differentiable())
      ir::throw_type_error(
          node.op->name, node.where,
          "has no derivative, but lies on the path " + describe_path(region, culprit, nodes));
  }

  static std::vector<Tensor> vjp(const Node& node, const std::vector<Tensor>& inputs,
                                 const std::vector<Tensor>& results,
                                 const std::vector<Tensor>& upstream,
                                 const std::vector<bool>& wants) {
    bool rule_applies = node.op->grad != nullptr;
    for (std::size_t k = static_cast<std::size_t>(node.op->grad_results); k < upstream.size(); ++k)
      rule_applies &= !upstream[k].valid();
    if (!rule_applies) return through_definition(node, inputs, upstream, wants);
    ir::GradContext context(inputs, results, upstream, wants);
    node.op->grad(context, node.attrs);
    return context.gradients();
  }

  // Differentiates the definition of a composite. It is built over inputs of its own and then
  // copied into the target: there, one value given twice, or once more behind an erased
  // stop_gradient, could not be told apart.
  static std::vector<Tensor> through_definition(const Node& node, const std::vector<Tensor>& inputs,
                                                const std::vector<Tensor>& upstream,
                                                const std::vector<bool>& wants) {
    Graph definition;
    std::vector<Tensor> formal;
    for (std::size_t k = 0; k < inputs.size(); ++k)
      formal.push_back(
          definition.input(ir::InferContext(*node.op, {}, {}).name_of(static_cast<int>(k)),
                           inputs[k].shape(), inputs[k].dtype()));
    const std::vector<Tensor> outputs = ops::expand(*node.op, node.attrs, formal, node.where);
    GraphData& target = *inputs[0].graph();
    const std::vector<std::vector<ValueId>> copies =
        copy_nodes(*definition.data(), target, inputs, true);
    Region inner{*definition.data(),
                 [&](ValueId id) { return target.tensor(copies[id.node][id.result]); },
                 {},
                 {}};
    for (std::size_t k = 0; k < inputs.size(); ++k)
      if (wants[k]) inner.roots.insert(formal[k].id());
    Contributions gradients;
    for (std::size_t k = 0; k < outputs.size(); ++k)
      if (upstream[k].valid()) gradients.add(outputs[k].id(), upstream[k]);
    Sweep::run(inner, cone(*definition.data(), outputs), gradients);
    std::vector<Tensor> found(inputs.size());
    for (std::size_t k = 0; k < inputs.size(); ++k)
      if (wants[k] && gradients.has(formal[k].id())) found[k] = gradients.total(formal[k].id());
    return found;
  }

 public:
  // The nodes that the outputs need, ascending.
  static std::vector<std::uint32_t> cone(const GraphData& graph,
                                         const std::vector<Tensor>& outputs) {
    std::set<std::uint32_t> nodes;
    std::vector<ValueId> open;
    for (const Tensor& t : outputs) open.push_back(t.id());
    while (!open.empty()) {
      const ValueId id = open.back();
      open.pop_back();
      if (!nodes.insert(id.node).second) continue;
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
std::string describe_path(const Region& region, std::uint32_t id,
                          const std::vector<std::uint32_t>& to_loss) {
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
    if (std::none_of(inputs.begin(), inputs.end(), [&](const ValueId& v) { return v.node == at; }))
      continue;
    path.push_back(node_name(region.source, next));
    at = next;
  }
  std::string text = path[0];
  for (std::size_t k = 1; k < path.size(); ++k) text += " -> " + path[k];
  return text;
}

// "f32[2,3] of relu (net.cpp:41)".
std::string described(const Tensor& t) {
  const Node& node = t.graph()->node(t.id().node);
  const std::string prefix = ir::message_prefix(node.op->name, node.where);
  return fmt::format("{} of {}", t.type().str(), prefix.substr(0, prefix.size() - 2));
}

void check_arguments(const Graph& graph, const Tensor& loss, const std::vector<Tensor>& wrt,
                     const Tensor& seed) {
  const auto check = [&](const Tensor& t, std::string_view what) {
    if (!t.valid() || t.graph() != graph.data())
      throw TypeError(fmt::format("differentiate: {} is not a value of the graph", what));
    if (!is_float(t.dtype()))
      throw TypeError(
          fmt::format("differentiate: {} must be a float value, got {}", what, described(t)));
  };
  check(loss, "the loss");
  if (loss.rank() != 0)
    throw TypeError(
        fmt::format("differentiate: the loss must be a scalar, got {}", described(loss)));
  for (std::size_t k = 0; k < wrt.size(); ++k) check(wrt[k], fmt::format("wrt[{}]", k));
  if (!seed.valid()) return;
  check(seed, "the seed");
  if (seed.type() != loss.type())
    throw TypeError(fmt::format("differentiate: the seed must be {}, got {}", loss.type().str(),
                                seed.type().str()));
}

}  // namespace

Tensor Gradients::at(const Tensor& old) const {
  const ValueId id = old.id();
  if (id.node >= values.size() || id.result >= values[id.node].size())
    throw TypeError("this value is not of the graph that was differentiated");
  return graph.value(values[id.node][id.result]);
}

Gradients differentiate(const Graph& graph, const Tensor& loss, const std::vector<Tensor>& wrt,
                        const DifferentiateOptions& options) {
  check_arguments(graph, loss, wrt, options.seed);
  Gradients result;
  GraphData& target = *result.graph.data();
  result.values = copy_nodes(*graph.data(), target, {}, options.keep_stop_gradients);
  for (const auto& [name, id] : graph.data()->outputs)
    target.outputs.emplace_back(name, result.values[id.node][id.result]);
  for (const auto& [leaf, id] : graph.data()->updates)
    target.updates.emplace_back(result.values[leaf][0].node, result.values[id.node][id.result]);
  Region region{*graph.data(),
                [&](ValueId id) { return target.tensor(result.values[id.node][id.result]); },
                {},
                {}};
  for (const Tensor& t : wrt) region.roots.insert(t.id());
  Contributions gradients;
  gradients.add(loss.id(),
                options.seed.valid() ? result.at(options.seed) : ones_like(result.at(loss)));
  Sweep::run(region, Sweep::cone(*graph.data(), {loss}), gradients);
  for (const Tensor& t : wrt) {
    GraphData::Scope scope(target, graph.data()->node(t.id().node).where);
    result.gradients.push_back(gradients.has(t.id()) ? gradients.total(t.id())
                                                     : zeros_like(result.at(t)));
  }
  return result;
}

}  // namespace pantala
