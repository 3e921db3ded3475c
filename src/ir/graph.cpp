#include "pantala/graph.h"

#include <fmt/format.h>

#include <utility>

#include "base/text.h"
#include "ir/graph_data.h"
#include "pantala/error.h"

namespace pantala {

using ir::GraphData;

const Type& Tensor::type() const {
  if (!graph_) throw TypeError("an empty tensor handle has no type");
  return graph_->type(id_);
}

std::int64_t Tensor::dim(int axis) const {
  const int at = axis < 0 ? axis + rank() : axis;
  if (at < 0 || at >= rank())
    throw TypeError(fmt::format("axis {} is out of range for {}", axis, type().str()));
  return shape()[at];
}

const Tensor& Operand::tensor() const {
  if (!tensor_.valid())
    throw TypeError(fmt::format("{}:{}: a tensor is needed here, not a number or an empty handle",
                                base_name(where_.file_name()), where_.line()));
  return tensor_;
}

Graph::Graph() : data_(GraphData::make()) {}
Graph::Graph(const Graph& other) : data_(other.data_->clone()) {}
Graph::Graph(Graph&& other) noexcept : data_(std::exchange(other.data_, GraphData::make())) {}
Graph& Graph::operator=(Graph&& other) noexcept {
  std::swap(data_, other.data_);
  return *this;
}
Graph& Graph::operator=(const Graph& other) {
  if (this != &other) data_ = other.data_->clone();
  return *this;
}

Tensor Graph::input(std::string_view name, const Shape& shape, DType dtype, Where where) {
  return data_->append(ir::input_op(), {}, {std::string(name), dtype, shape.vec()},
                       ir::provenance(where))[0];
}
Tensor Graph::parameter(std::string_view name, const Shape& shape, const Initializer& init,
                        DType dtype, Where where) {
  return data_->append(ir::parameter_op(), {}, {std::string(name), dtype, shape.vec(), init},
                       ir::provenance(where))[0];
}
Tensor Graph::state(std::string_view name, const Shape& shape, const Initializer& init, DType dtype,
                    Where where) {
  return data_->append(ir::state_op(), {}, {std::string(name), dtype, shape.vec(), init},
                       ir::provenance(where))[0];
}
Tensor Graph::scalar(std::string_view name, double value, Where where) {
  return data_->append(ir::scalar_op(), {}, {std::string(name), value}, ir::provenance(where))[0];
}
Tensor Graph::constant(double value, const Shape& shape, DType dtype, Where where) {
  return data_->append(ir::constant_op(), {}, {value, dtype, shape.vec()},
                       ir::provenance(where))[0];
}
Tensor Graph::constant(Literal values, Where where) {
  return data_->append(ir::data_op(), {}, {std::make_shared<const Literal>(std::move(values))},
                       ir::provenance(where))[0];
}

namespace {
Tensor counter(Graph& graph, std::string_view name) {
  if (const std::optional<Tensor> found = graph.find(name)) return *found;
  return graph.state(name, {}, init::zeros(), i64);
}
}  // namespace
Tensor Graph::rng_seed() { return counter(*this, "rng.seed"); }
Tensor Graph::rng_draw() { return counter(*this, "rng.draw"); }

namespace {
void check_owner(const GraphData& graph, const Tensor& value, std::string_view what,
                 const ir::Provenance& where) {
  if (!value.valid()) ir::throw_type_error(what, where, "the value is an empty handle");
  if (value.graph().get() != &graph)
    ir::throw_type_error(what, where, "the value belongs to another graph");
}
}  // namespace

void Graph::output(std::string_view name, const Tensor& value, Where where) {
  const ir::Provenance at = ir::provenance(where);
  check_owner(*data_, value, "output", at);
  if (name.empty()) ir::throw_type_error("output", at, "a name cannot be empty");
  for (const auto& [other, id] : data_->outputs())
    if (other == name)
      ir::throw_type_error("output", at, fmt::format("the name '{}' is used twice", name));
  data_->add_output(std::string(name), value.id());
}

void Graph::update(const Tensor& leaf, const Tensor& value, Where where) {
  const ir::Provenance at = ir::provenance(where);
  check_owner(*data_, leaf, "update", at);
  check_owner(*data_, value, "update", at);
  const ir::Node& node = data_->node(leaf.id().node);
  const std::optional<LeafKind> kind = ir::leaf_kind(*node.op);
  if (kind != LeafKind::parameter && kind != LeafKind::state)
    ir::throw_type_error(
        "update", at,
        fmt::format("only a parameter or a state can be updated, not the result of {}",
                    node.op->name));
  if (leaf.type() != value.type())
    ir::throw_type_error(
        "update", at,
        fmt::format("'{}' is {}, its new value is {}", data_->leaf_name(leaf.id().node),
                    leaf.type().str(), value.type().str()));
  for (const auto& [other, id] : data_->updates())
    if (other == leaf.id().node)
      ir::throw_type_error("update", at,
                           fmt::format("'{}' is updated twice", data_->leaf_name(other)));
  data_->add_update(leaf.id().node, value.id());
}

std::size_t Graph::size() const { return data_->nodes().size(); }

std::vector<Leaf> Graph::leaves() const {
  std::vector<Leaf> result;
  for (const std::uint32_t id : data_->leaves())
    result.push_back(
        {*ir::leaf_kind(*data_->node(id).op), data_->leaf_name(id), data_->tensor({id, 0})});
  return result;
}

std::vector<Leaf> Graph::leaves(LeafKind kind) const {
  std::vector<Leaf> result = leaves();
  std::erase_if(result, [&](const Leaf& leaf) { return leaf.kind != kind; });
  return result;
}

std::optional<Tensor> Graph::find(std::string_view name) const {
  const std::optional<std::uint32_t> id = data_->find_leaf(name);
  return id ? std::optional(data_->tensor({*id, 0})) : std::nullopt;
}

Tensor Graph::leaf(std::string_view name) const {
  if (const std::optional<Tensor> found = find(name)) return *found;
  std::vector<std::string> names;
  for (const std::uint32_t id : data_->leaves()) names.push_back(data_->leaf_name(id));
  throw TypeError(
      fmt::format("the graph has no leaf named '{}'{}", name, did_you_mean(name, names)));
}

Tensor Graph::output(std::string_view name) const {
  std::vector<std::string> names;
  for (const auto& [other, id] : data_->outputs()) {
    if (other == name) return data_->tensor(id);
    names.push_back(other);
  }
  throw TypeError(
      fmt::format("the graph has no output named '{}'{}", name, did_you_mean(name, names)));
}

std::vector<std::pair<std::string, Tensor>> Graph::outputs() const {
  std::vector<std::pair<std::string, Tensor>> result;
  for (const auto& [name, id] : data_->outputs()) result.emplace_back(name, data_->tensor(id));
  return result;
}

std::vector<std::pair<Tensor, Tensor>> Graph::updates() const {
  std::vector<std::pair<Tensor, Tensor>> result;
  for (const auto& [leaf, id] : data_->updates())
    result.emplace_back(data_->tensor({leaf, 0}), data_->tensor(id));
  return result;
}

Tensor Graph::value(ValueId id) const {
  if (id.node >= data_->nodes().size() || id.result >= data_->node(id.node).results.size())
    throw TypeError(fmt::format("the graph has no value %{}:{}", id.node, id.result));
  return data_->tensor(id);
}

// A value of another graph would be read as some other: the nodes must be equal.
bool Graph::has(const Tensor& value) const {
  const ValueId id = value.id();
  if (!value.valid() || id.node >= data_->nodes().size()) return false;
  return value.graph() == data_ ||
         ir::same_node(data_->node(id.node), value.graph()->node(id.node));
}

Graph Graph::with_outputs(const std::vector<std::pair<std::string, Tensor>>& outputs) const& {
  return Graph(*this).with_outputs(outputs);
}
Graph Graph::with_outputs(const std::vector<std::pair<std::string, Tensor>>& outputs) && {
  data_->clear_outputs();
  for (const auto& [name, value] : outputs) {
    if (value.valid() && !has(value))
      throw TypeError(fmt::format("the output '{}' is not a value of this graph", name));
    output(name, value.valid() ? this->value(value.id()) : value);
  }
  return std::move(*this);
}

Graph Graph::without_updates() const& { return Graph(*this).without_updates(); }
Graph Graph::without_updates() && {
  data_->clear_updates();
  return std::move(*this);
}

}  // namespace pantala
