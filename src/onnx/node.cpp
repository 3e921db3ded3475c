#include "onnx/node.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ir/graph_data.h"
#include "pantala/error.h"

namespace pantala::onnx {

Tensor Context::tensor(Value& value) {
  if (value.tensor.valid()) return value.tensor;
  if (value.weight != nullptr && options.trainable) {
    value.tensor =
        value.is_state
            ? graph.state(value.name, value.type.shape, init::zeros(), value.type.dtype)
            : graph.parameter(value.name, value.type.shape, init::zeros(), value.type.dtype);
    weights.set(value.name, value.type, tensor_bytes(*value.weight, source));
  } else {
    value.tensor = graph.constant(*literal(value));
  }
  return value.tensor;
}

std::shared_ptr<const Literal> Context::literal(const Value& value) const {
  if (value.constant != nullptr || value.weight == nullptr) return value.constant;
  return std::make_shared<const Literal>(tensor_literal(*value.weight, source));
}

Followed* Context::find_followed(Value& value) {
  const bool is_leaf = options.trainable && value.weight != nullptr && value.is_state;
  if ((value.type.dtype != f32 && value.type.dtype != f64) || (!is_leaf && !value.tensor.valid()))
    return nullptr;
  const Tensor given = tensor(value);
  for (Followed& known : followed)
    if (known.leaf == given || known.latest == given) return &known;
  return is_leaf ? &followed.emplace_back(Followed{given, given}) : nullptr;
}

std::string label_of(const pb::NodeProto& node) {
  if (!node.name().empty()) return node.name();
  for (const std::string& output : node.output())
    if (!output.empty()) return output;
  return "";
}

namespace {
bool is_half(DType dtype) { return dtype == f16 || dtype == bf16; }
}  // namespace

Node::Node(const pb::NodeProto& proto, std::vector<ValuePtr> inputs, Context& context, Graph& graph,
           bool in_f32)
    : proto_(proto),
      inputs_(std::move(inputs)),
      results_(static_cast<std::size_t>(proto.output_size())),
      context_(context),
      graph_(graph),
      in_f32_(in_f32) {}

// --- inputs
bool Node::has(int input) const {
  return input < inputs() && inputs_[static_cast<std::size_t>(input)] != nullptr;
}

const ValuePtr& Node::value(int input) const {
  if (!has(input)) fail(fmt::format("input {} is missing", input + 1));
  return inputs_[static_cast<std::size_t>(input)];
}

const Type& Node::type(int input) const { return value(input)->type; }

Tensor Node::tensor(int input) {
  const ValuePtr& given = value(input);
  Tensor found = evaluates() ? graph_.constant(*given->constant) : context_.tensor(*given);
  if (in_f32_ && is_half(found.dtype())) found = cast(found, f32);
  return input == 1 ? aligned(found) : found;
}

Tensor Node::aligned(const Tensor& second) const {
  if (opset() >= 7 || attribute("broadcast", std::int64_t{0}) == 0 || !has_attribute("axis"))
    return second;
  IntList sizes = second.shape().vec();
  const int first = axis(attribute("axis", std::int64_t{0}), rank(0));
  if (first + second.rank() > rank(0)) fail("the second input does not fit behind its axis");
  sizes.resize(static_cast<std::size_t>(rank(0) - first), 1);
  return reshape(second, sizes);
}

std::vector<Tensor> Node::tensors() {
  std::vector<Tensor> all;
  for (int k = 0; k < inputs(); ++k) all.push_back(tensor(k));
  return all;
}

bool Node::is_constant(int input) const { return value(input)->constant != nullptr; }

std::shared_ptr<const Literal> Node::constant(int input) const {
  const Value& given = *value(input);
  if (std::shared_ptr<const Literal> known = context_.literal(given)) return known;
  if (!given.sources.empty())
    unsupported(fmt::format("its input {} decides a shape or an option: bind '{}' to its value",
                            input + 1, fmt::join(given.sources, "' to its value, bind '")));
  unsupported(fmt::format(
      "its input {} decides a shape or an option, but is known at run time only", input + 1));
}

std::vector<std::int64_t> Node::integers(int input) const {
  const std::shared_ptr<const Literal> literal = constant(input);
  if (literal->is_float()) fail(fmt::format("input {} must be integers", input + 1));
  return {literal->i().begin(), literal->i().end()};
}

std::int64_t Node::integer(int input) const {
  const std::vector<std::int64_t> all = integers(input);
  if (all.size() != 1)
    fail(fmt::format("input {} must be one number, got {}", input + 1, type(input).str()));
  return all[0];
}

double Node::number(int input) const {
  const std::shared_ptr<const Literal> literal = constant(input);
  if (literal->numel() != 1)
    fail(fmt::format("input {} must be one number, got {}", input + 1, type(input).str()));
  return literal->at(0);
}

// --- attributes
const pb::AttributeProto* Node::find(std::string_view name, int type) const {
  for (const pb::AttributeProto& attribute : proto_.attribute()) {
    if (attribute.name() != name) continue;
    if (!attribute.ref_attr_name().empty())
      unsupported(fmt::format("attribute '{}' belongs to a function", name));
    // Old files do not say the type.
    if (attribute.type() != pb::AttributeProto::UNDEFINED && attribute.type() != type)
      fail(fmt::format("attribute '{}' has another type than expected", name));
    return &attribute;
  }
  return nullptr;
}

bool Node::is_of_training_call() const { return Scopes::is_of_training_call(proto_); }
bool Node::is_of_detach() const { return Scopes::is_of_detach(proto_); }
Scopes::EmbeddingCall Node::embedding_call() const { return Scopes::embedding_call(proto_); }

bool Node::has_attribute(std::string_view name) const {
  for (const pb::AttributeProto& attribute : proto_.attribute())
    if (attribute.name() == name) return true;
  return false;
}

std::int64_t Node::attribute(std::string_view name, std::int64_t otherwise) const {
  const pb::AttributeProto* found = find(name, pb::AttributeProto::INT);
  return found != nullptr ? found->i() : otherwise;
}

double Node::attribute(std::string_view name, double otherwise) const {
  const pb::AttributeProto* found = find(name, pb::AttributeProto::FLOAT);
  return found != nullptr ? static_cast<double>(found->f()) : otherwise;
}

std::string Node::attribute(std::string_view name, const std::string& otherwise) const {
  const pb::AttributeProto* found = find(name, pb::AttributeProto::STRING);
  return found != nullptr ? found->s() : otherwise;
}

IntList Node::integers(std::string_view name, const IntList& otherwise) const {
  const pb::AttributeProto* found = find(name, pb::AttributeProto::INTS);
  return found != nullptr ? IntList(found->ints().begin(), found->ints().end()) : otherwise;
}

std::vector<double> Node::numbers(std::string_view name) const {
  const pb::AttributeProto* found = find(name, pb::AttributeProto::FLOATS);
  return found != nullptr ? std::vector<double>(found->floats().begin(), found->floats().end())
                          : std::vector<double>();
}

std::vector<std::string> Node::texts(std::string_view name) const {
  const pb::AttributeProto* found = find(name, pb::AttributeProto::STRINGS);
  return found != nullptr
             ? std::vector<std::string>(found->strings().begin(), found->strings().end())
             : std::vector<std::string>();
}

const pb::TensorProto* Node::tensor_attribute(std::string_view name) const {
  const pb::AttributeProto* found = find(name, pb::AttributeProto::TENSOR);
  return found != nullptr ? &found->t() : nullptr;
}

Literal Node::read(const pb::TensorProto& tensor) const {
  return tensor_literal(tensor, context_.source);
}

IntList Node::integers(int input, std::string_view name) const {
  return has(input) ? integers(input) : integers(name, {});
}

// --- results
bool Node::wants(int result) const {
  return result < results() && !proto_.output(result).empty() &&
         context_.read_names.contains(proto_.output(result));
}

void Node::give(int result, const Tensor& value) {
  if (!wants(result)) return;
  const bool narrow = in_f32_ && result == 0 && is_half(dtype(0)) && value.dtype() == f32;
  results_[static_cast<std::size_t>(result)] = narrow ? cast(value, dtype(0)) : value;
}
void Node::give_constant(int result, Literal value) {
  if (wants(result))
    results_[static_cast<std::size_t>(result)] = std::make_shared<const Literal>(std::move(value));
}
void Node::give_value(int result, const ValuePtr& value) {
  if (wants(result)) results_[static_cast<std::size_t>(result)] = value;
}

int Node::axis(std::int64_t axis, int rank) const {
  if (axis < -rank || axis >= rank)
    fail(fmt::format("axis {} is out of range for {} axes", axis, rank));
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

Tensor Node::index_constant(const std::vector<std::int64_t>& values, const Shape& shape) {
  return graph_.constant(Literal::ints(shape, values));
}

void Node::spend_elements(std::int64_t count) {
  if (count < 0 || count > context_.elements_left)
    unsupported(
        fmt::format("it needs a constant of {} elements, which is too much for this file", count));
  context_.elements_left -= count;
}

void Node::warn(const std::string& text) {
  context_.warnings.push_back(fmt::format("{} '{}': {}", op(), label_of(proto_), text));
}
void Node::unsupported(const std::string& reason) const { throw UnsupportedError(reason); }
void Node::fail(const std::string& reason) const { throw TypeError(reason); }

}  // namespace pantala::onnx
