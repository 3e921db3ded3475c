#include "onnx/export_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "onnx/proto.h"
#include "ops/face.h"
#include "ops/movement.h"
#include "pantala/interpreter.h"

namespace pantala::onnx {

namespace {

// Constants are computed in whole graphs of their own: what depends on no leaf.
std::vector<bool> constant_nodes(const ir::GraphData& graph) {
  std::vector<bool> constant;
  for (const ir::Node& node : graph.nodes()) {
    bool all = !ir::leaf_kind(*node.op).has_value();
    for (const ValueId& input : node.inputs) all = all && constant[input.node];
    constant.push_back(all);
  }
  return constant;
}

void set_attribute(pb::AttributeProto& proto, const std::string& name, const ExportAttr& value) {
  proto.set_name(name);
  if (const auto* number = std::get_if<std::int64_t>(&value)) {
    proto.set_type(pb::AttributeProto::INT);
    proto.set_i(*number);
  } else if (const auto* real = std::get_if<double>(&value)) {
    proto.set_type(pb::AttributeProto::FLOAT);
    proto.set_f(static_cast<float>(*real));
  } else if (const auto* text = std::get_if<std::string>(&value)) {
    proto.set_type(pb::AttributeProto::STRING);
    proto.set_s(*text);
  } else {
    proto.set_type(pb::AttributeProto::INTS);
    for (const std::int64_t entry : std::get<ir::Ints>(value)) proto.add_ints(entry);
  }
}

}  // namespace

void set_tensor(pb::TensorProto& tensor, const std::string& name, const Type& type) {
  tensor.set_name(name);
  tensor.set_data_type(onnx_type(type.dtype));
  for (const std::int64_t size : type.shape) tensor.add_dims(size);
}

void set_tensor(pb::TensorProto& tensor, const std::string& name, const Literal& value) {
  set_tensor(tensor, name, value.type());
  Weights one;
  one.set("value", value);
  const std::span<const std::byte> bytes = one.bytes("value");
  tensor.set_raw_data(bytes.data(), bytes.size());
}

GraphWriter::GraphWriter(const Graph& graph, pb::GraphProto& proto, std::int64_t opset,
                         std::set<std::string> taken)
    : graph_(graph),
      proto_(proto),
      opset_(opset),
      taken_(std::move(taken)),
      constant_(constant_nodes(*graph.data())) {
  for (const ir::Node& node : graph.data()->nodes())
    for (const ValueId& input : node.inputs) ++uses_[input];
  for (const auto& [name, value] : graph.data()->outputs()) ++uses_[value];
}

int GraphWriter::uses(ValueId id) const {
  const auto found = uses_.find(id);
  return found == uses_.end() ? 0 : found->second;
}

std::string GraphWriter::fresh(std::string_view stem) {
  int& counter = counters_[std::string(stem)];
  std::string name;
  do name = fmt::format("{}_{}", stem, counter++);
  while (!taken_.insert(name).second);
  return name;
}

std::string GraphWriter::name(ValueId id) {
  const auto found = names_.find(id);
  if (found != names_.end()) return found->second;
  const std::string name = write_constant(id);
  names_[id] = name;
  return name;
}

std::string GraphWriter::write_constant(ValueId id) {
  const ir::Node& node = graph().node(id.node);
  const Type& type = graph().type(id);
  const bool large = type.shape.numel() > 64;
  if (const std::optional<double> splat = ir::splat_value(node); splat && large)
    return add("Expand", {scalar(*splat, type.dtype), numbers(type.shape.vec())});
  if (ops::is<op::BroadcastTo>(node) && large)
    return add("Expand", {name(node.inputs[0]), numbers(type.shape.vec())});
  return constant(ref::evaluate(graph_, {graph_.value(id)}, {})[0]);
}

std::string GraphWriter::add(const std::string& op, const Names& inputs, const ExportAttrs& attrs) {
  pb::NodeProto& node = *proto_.add_node();
  const std::string result = fresh(op);
  node.set_op_type(op);
  node.set_name(result);
  for (const std::string& input : inputs) node.add_input(input);
  node.add_output(result);
  for (const auto& [name, value] : attrs) set_attribute(*node.add_attribute(), name, value);
  makers_[result] = proto_.node_size() - 1;
  return result;
}

std::string GraphWriter::second_result(const std::string& first) {
  pb::NodeProto& node = *proto_.mutable_node(makers_.at(first));
  const std::string result = fresh(node.op_type());
  node.add_output(result);
  return result;
}

bool GraphWriter::append_input(ValueId id, std::string_view op, const std::string& input) {
  const auto maker = makers_.find(name(id));
  if (maker == makers_.end() || proto_.node(maker->second).op_type() != op) return false;
  proto_.mutable_node(maker->second)->add_input(input);
  return true;
}

std::string GraphWriter::constant(const Literal& value) {
  pb::TensorProto tensor;
  set_tensor(tensor, "", value);
  std::string& name = literals_[tensor.SerializeAsString()];
  if (!name.empty()) return name;
  name = fresh("constant");
  tensor.set_name(name);
  // Readers take a floating initialiser for a weight; a node is none.
  if (value.is_float() && value.shape().rank() > 0) {
    pb::NodeProto& node = *proto_.add_node();
    node.set_op_type("Constant");
    node.set_name(name);
    node.add_output(name);
    pb::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name("value");
    attribute.set_type(pb::AttributeProto::TENSOR);
    *attribute.mutable_t() = std::move(tensor);
  } else {
    *proto_.add_initializer() = std::move(tensor);
  }
  return name;
}

void GraphWriter::prune() {
  std::set<std::string> needed;
  for (const pb::ValueInfoProto& output : proto_.output()) needed.insert(output.name());
  std::vector<bool> keep(static_cast<std::size_t>(proto_.node_size()));
  for (int k = proto_.node_size(); k-- > 0;) {
    const pb::NodeProto& node = proto_.node(k);
    const auto wanted = [&](const std::string& name) { return needed.contains(name); };
    keep[static_cast<std::size_t>(k)] =
        std::any_of(node.output().begin(), node.output().end(), wanted);
    if (keep[static_cast<std::size_t>(k)]) needed.insert(node.input().begin(), node.input().end());
  }
  int at = 0;
  for (int k = 0; k < proto_.node_size(); ++k)
    if (keep[static_cast<std::size_t>(k)]) proto_.mutable_node()->SwapElements(at++, k);
  proto_.mutable_node()->DeleteSubrange(at, proto_.node_size() - at);
  auto& initializers = *proto_.mutable_initializer();
  initializers.erase(std::remove_if(initializers.begin(), initializers.end(),
                                    [&](const pb::TensorProto& tensor) {
                                      return !needed.contains(tensor.name());
                                    }),
                     initializers.end());
}

std::string GraphWriter::numbers(const ir::Ints& values) {
  return constant(Literal::ints({std::ssize(values)}, values));
}

std::string GraphWriter::scalar(double value, DType dtype) {
  return constant(is_float(dtype) ? Literal::scalar(value, dtype)
                                  : Literal::integer(static_cast<std::int64_t>(value), dtype));
}

std::string NodeWriter::reshaped(const std::string& value, const Shape& from,
                                 const Shape& to) const {
  if (from == to) return value;
  // A size 0 would mean "as it was".
  const bool empty = std::find(to.begin(), to.end(), 0) != to.end();
  return add("Reshape", {value, writer.numbers(to.vec())},
             empty ? ExportAttrs{{"allowzero", std::int64_t{1}}} : ExportAttrs{});
}

std::string NodeWriter::permuted(const std::string& value, const ir::Ints& axes) const {
  ir::Ints same(axes.size());
  std::iota(same.begin(), same.end(), 0);
  return axes == same ? value : add("Transpose", {value}, {{"perm", axes}});
}

Names NodeWriter::broadcast_inputs() const {
  const ir::GraphData& graph = writer.graph();
  // As long as one input has the whole shape the others may be smaller.
  std::vector<ValueId> sources = node.inputs;
  std::vector<Shape> shapes;
  for (const ValueId& id : sources) shapes.push_back(graph.type(id).shape);
  const auto still_fits = [&] {
    Shape common;
    for (const Shape& shape : shapes)
      if (!broadcast_shapes(common, shape, common)) return false;
    return common == result_type().shape;
  };
  Names names(sources.size());
  for (std::size_t k = 0; k < sources.size(); ++k) {
    const ir::Node& maker = graph.node(sources[k].node);
    const Shape before = shapes[k];
    const std::optional<double> splat = ir::splat_value(maker);
    if (splat)
      shapes[k] = Shape{};
    else if (ops::is<op::BroadcastTo>(maker))
      shapes[k] = graph.type(maker.inputs[0]).shape;
    else
      continue;
    if (!still_fits())
      shapes[k] = before;
    else if (splat)
      names[k] = writer.scalar(*splat, graph.type(sources[k]).dtype);
    else
      sources[k] = maker.inputs[0];
  }
  for (std::size_t k = 0; k < sources.size(); ++k)
    if (names[k].empty()) names[k] = writer.name(sources[k]);
  return names;
}

}  // namespace pantala::onnx
