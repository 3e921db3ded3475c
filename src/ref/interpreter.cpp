#include "pantala/interpreter.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "ir/graph_data.h"
#include "ir/leaves.h"
#include "ops/table.h"
#include "pantala/error.h"
#include "ref/flatten.h"

namespace pantala::ref {

using ir::Node;
using ir::Number;

namespace {

Literal evaluate_pointwise(const Node& node, const std::vector<const Literal*>& inputs) {
  const ir::ScalarFn function = node.op->scalar(node.attrs);
  Literal out(node.results[0]);
  std::vector<Number> x(inputs.size());
  for (std::int64_t k = 0; k < out.numel(); ++k) {
    for (std::size_t i = 0; i < inputs.size(); ++i)
      x[i] = inputs[i]->is_float() ? Number(inputs[i]->f()[k]) : Number::of(inputs[i]->i()[k]);
    const Number y = function(x.data());
    if (out.is_float())
      out.f()[k] = y.real();
    else
      out.i()[k] = wrap_to(out.dtype(), y.i);
  }
  return out;
}

// One evaluation of a graph that holds primitives only.
class Evaluation {
 public:
  Evaluation(const ir::GraphData& graph, const Bindings& bindings, std::uint64_t seed)
      : graph_(graph), bindings_(bindings), seed_(seed) {}

  std::vector<Literal> run(const std::vector<ValueId>& wanted) {
    count_uses(wanted);
    values_.resize(graph_.nodes().size());
    for (std::uint32_t id = 0; id < graph_.nodes().size(); ++id) {
      if (uses_[id] == 0) continue;
      values_[id] = compute(id);
      for (const ValueId& input : graph_.node(id).inputs)
        if (--uses_[input.node] == 0) values_[input.node].clear();
    }
    std::vector<Literal> results;
    for (const ValueId& id : wanted) results.push_back(values_[id.node][id.result]);
    return results;
  }

 private:
  void count_uses(const std::vector<ValueId>& wanted) {
    uses_.assign(graph_.nodes().size(), 0);
    for (const ValueId& id : wanted) ++uses_[id.node];
    for (auto id = static_cast<std::uint32_t>(graph_.nodes().size()); id-- > 0;)
      if (uses_[id] > 0)
        for (const ValueId& input : graph_.node(id).inputs) ++uses_[input.node];
  }

  std::vector<Literal> compute(std::uint32_t id) {
    const Node& node = graph_.node(id);
    if (node.op->leaf) return {leaf(id)};
    std::vector<const Literal*> inputs;
    for (const ValueId& input : node.inputs) inputs.push_back(&values_[input.node][input.result]);
    std::vector<Literal> results;
    try {
      if (node.op->eval)
        results = node.op->eval(ir::EvalContext(inputs, node.results), node.attrs);
      else
        results = {evaluate_pointwise(node, inputs)};
    } catch (const ValueError& error) {
      throw ValueError(ir::message_prefix(node.op->name, node.where) + error.what());
    } catch (const TypeError& error) {  // a result that does not fit the memory
      ir::throw_type_error(node.op->name, node.where, error.what());
    }
    for (std::size_t k = 0; k < node.results.size(); ++k)
      if (k >= results.size() || results[k].type() != node.results[k])
        throw InternalError(fmt::format(
            "{}: the interpreter gives {} where the shape rule says {}", node.op->name,
            k < results.size() ? results[k].type().str() : "nothing", node.results[k].str()));
    return results;
  }

  Literal leaf(std::uint32_t id) {
    const Node& node = graph_.node(id);
    const std::string& name = graph_.leaf_name(id);
    if (const auto it = bindings_.find(name); it != bindings_.end()) {
      if (it->second.type() != node.results[0])
        throw TypeError(fmt::format("'{}' is {}, but {} was given", name, node.results[0].str(),
                                    it->second.type().str()));
      return it->second;
    }
    return initial_value(node, name, seed_);
  }

 public:
  static Literal initial_value(const Node& node, const std::string& name, std::uint64_t seed) {
    switch (*ir::leaf_kind(*node.op)) {
      case LeafKind::input:
        throw TypeError(fmt::format("input '{}' {} has no value", name, node.results[0].str()));
      case LeafKind::scalar:
        return Literal::scalar(ir::attributes<op::Scalar>(node).value);
      default:
        return init::make(ir::attributes<op::StoredAttrs>(node).init, node.results[0], name, seed);
    }
  }

 private:
  const ir::GraphData& graph_;
  const Bindings& bindings_;
  std::uint64_t seed_;
  std::vector<std::int64_t> uses_;
  std::vector<std::vector<Literal>> values_;
};

std::vector<std::string> leaf_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const Leaf& leaf : graph.leaves()) names.push_back(leaf.name);
  return names;
}

// The id of a value of this graph, or of a graph that it is a copy of (ids stay equal). Another
// graph's value would be read as some other.
ValueId id_in(const Graph& graph, const Tensor& t) {
  const std::deque<Node>& nodes = graph.data()->nodes();
  const ValueId id = t.id();
  const bool known =
      t.valid() && id.node < nodes.size() &&
      (t.graph() == graph.data() || ir::same_node(nodes[id.node], t.graph()->node(id.node)));
  if (!known)
    throw TypeError(
        t.valid() ? fmt::format("%{} {} is not a value of this graph", id.node, t.type().str())
                  : "an empty handle is not a value of this graph");
  return id;
}

}  // namespace

std::vector<Literal> evaluate(const Graph& graph, const std::vector<Tensor>& values,
                              const Bindings& bindings, std::uint64_t seed) {
  for (const auto& [name, value] : bindings)
    if (!graph.find(name))
      throw TypeError(fmt::format("the graph has no leaf named '{}'{}", name,
                                  did_you_mean(name, leaf_names(graph))));
  std::vector<ValueId> wanted;
  for (const Tensor& t : values) wanted.push_back(id_in(graph, t));
  const Flat flat = flatten(graph, wanted);
  return Evaluation(*flat.graph.data(), bindings, seed).run(flat.values);
}

Session::Session(Graph graph, std::uint64_t seed) : graph_(std::move(graph)) {
  for (const Leaf& leaf : graph_.leaves()) {
    if (leaf.kind == LeafKind::input) continue;
    bindings_[leaf.name] =
        leaf.name == "rng.seed"
            ? Literal::integer(static_cast<std::int64_t>(seed))
            : Evaluation::initial_value(graph_.data()->node(leaf.value.id().node), leaf.name, seed);
  }
}

// A leaf of one of the given kinds; TypeError for other names.
Tensor Session::leaf(std::string_view name, std::initializer_list<LeafKind> kinds,
                     std::string_view what) const {
  std::vector<std::string> names;
  for (const Leaf& leaf : graph_.leaves()) {
    if (std::find(kinds.begin(), kinds.end(), leaf.kind) == kinds.end()) continue;
    if (leaf.name == name) return leaf.value;
    names.push_back(leaf.name);
  }
  throw TypeError(
      fmt::format("the graph has no {} named '{}'{}", what, name, did_you_mean(name, names)));
}

// Nothing is kept of a value of the wrong type.
void Session::bind(std::string_view name, const Tensor& leaf, Literal value) {
  if (value.type() != leaf.type())
    throw TypeError(
        fmt::format("'{}' is {}, but {} was given", name, leaf.type().str(), value.type().str()));
  bindings_.insert_or_assign(std::string(name), std::move(value));
}

void Session::set_input(std::string_view name, Literal value) {
  bind(name, leaf(name, {LeafKind::input}, "input"), std::move(value));
}

void Session::set_scalar(std::string_view name, double value) {
  bind(name, leaf(name, {LeafKind::scalar}, "scalar"), Literal::scalar(value));
}

void Session::set_value(std::string_view name, Literal value) {
  bind(name, leaf(name, {LeafKind::parameter, LeafKind::state}, "parameter or state"),
       std::move(value));
}

const Literal& Session::value(std::string_view name) const {
  leaf(name, {LeafKind::parameter, LeafKind::state}, "parameter or state");
  return bindings_.find(name)->second;
}

double Session::scalar(std::string_view name) const {
  leaf(name, {LeafKind::scalar}, "scalar");
  return bindings_.find(name)->second.at(0);
}

void Session::observe(const std::vector<Tensor>& tensors) {
  for (const Tensor& t : tensors) observed_ids_.push_back(id_in(graph_, t));
}

void Session::step() { evaluate_all(true); }
void Session::run() { evaluate_all(false); }

void Session::evaluate_all(bool with_updates) {
  std::vector<Tensor> wanted;
  const auto outputs = graph_.outputs();
  const auto updates = with_updates ? graph_.updates() : std::vector<std::pair<Tensor, Tensor>>{};
  for (const auto& [name, t] : outputs) wanted.push_back(t);
  for (const ValueId& id : observed_ids_) wanted.push_back(graph_.value(id));
  for (const auto& [leaf, t] : updates) wanted.push_back(t);
  std::vector<Literal> values = evaluate(graph_, wanted, bindings_);
  std::size_t k = 0;
  for (const auto& [name, t] : outputs) outputs_[name] = std::move(values[k++]);
  for (const ValueId& id : observed_ids_) observed_[id] = std::move(values[k++]);
  for (const auto& [leaf, t] : updates)
    bindings_[graph_.data()->leaf_name(leaf.id().node)] = std::move(values[k++]);
}

const Literal& Session::output(std::string_view name) const {
  const auto it = outputs_.find(name);
  if (it != outputs_.end()) return it->second;
  graph_.output(name);  // an unknown name is a TypeError
  throw TypeError(fmt::format("output '{}' has no value before the first step", name));
}

double Session::output_scalar(std::string_view name) const {
  const Literal& value = output(name);
  if (value.numel() != 1)
    throw TypeError(fmt::format("output '{}' is {}, not a scalar", name, value.type().str()));
  return value.at(0);
}

const Literal& Session::observed(const Tensor& tensor) const {
  const auto it = observed_.find(tensor.id());
  if (it == observed_.end())
    throw TypeError("this value is not observed, or no step has been run: name it with observe()");
  return it->second;
}

}  // namespace pantala::ref
