#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "onnx/model_inputs.h"
#include "onnx/proto.h"
#include "pantala/onnx.h"

namespace pantala::onnx {

namespace {

std::string dtype_text(int number) {
  const std::optional<DType> dtype = dtype_of(number);
  return dtype ? std::string(dtype_name(*dtype)) : onnx_type_name(number);
}

Summary::Value value_of(const pb::ValueInfoProto& info) {
  if (!info.type().has_tensor_type()) return {.name = info.name(), .dtype = "no tensor"};
  const pb::TypeProto::Tensor& type = info.type().tensor_type();
  Summary::Value value{.name = info.name(), .dtype = dtype_text(type.elem_type())};
  if (!type.has_shape()) return value;
  value.axes.emplace();
  for (const auto& dim : type.shape().dim())
    value.axes->push_back(
        {.size = dim.has_dim_value() ? dim.dim_value() : -1, .symbol = dim.dim_param()});
  return value;
}

// Bytes of an element, as far as Pantala has the type.
std::uint64_t element_bytes(int number) {
  const std::optional<DType> dtype = dtype_of(number);
  return dtype ? static_cast<std::uint64_t>(dtype_bytes(*dtype)) : 0;
}

Summary::Tensor tensor_of(const pb::TensorProto& tensor) {
  Summary::Tensor made{.name = tensor.name(),
                       .dtype = dtype_text(tensor.data_type()),
                       .shape = {tensor.dims().begin(), tensor.dims().end()}};
  made.bytes = element_bytes(tensor.data_type());
  for (const std::int64_t size : made.shape)
    if (size < 0 ||
        __builtin_mul_overflow(made.bytes, static_cast<std::uint64_t>(size), &made.bytes))
      made.bytes = 0;
  for (const pb::StringStringEntryProto& entry : tensor.external_data())
    if (entry.key() == "location") made.external = entry.value();
  return made;
}

}  // namespace

std::string Summary::Value::str() const {
  if (!axes) return dtype + " of any shape";
  std::vector<std::string> sizes;
  for (const Axis& axis : *axes)
    sizes.push_back(axis.size >= 0        ? std::to_string(axis.size)
                    : axis.symbol.empty() ? "?"
                                          : axis.symbol);
  return fmt::format("{}[{}]", dtype, fmt::join(sizes, ","));
}

Summary summarize(const std::filesystem::path& path) {
  const pb::ModelProto model = read_model(path);
  const pb::GraphProto& graph = model.graph();
  Summary summary;
  summary.name = graph.name();
  summary.producer = model.producer_name();
  if (!model.producer_version().empty()) summary.producer += " " + model.producer_version();
  for (const pb::OperatorSetIdProto& set : model.opset_import())
    if (is_default_domain(set.domain())) summary.opset = std::max(summary.opset, set.version());
  for (const pb::StringStringEntryProto& entry : model.metadata_props())
    summary.metadata.emplace_back(entry.key(), entry.value());
  std::set<std::string> initialised;
  for (const pb::TensorProto& tensor : graph.initializer()) {
    initialised.insert(tensor.name());
    summary.tensors.push_back(tensor_of(tensor));
  }
  for (const pb::ValueInfoProto& input : graph.input())
    if (!initialised.contains(input.name())) summary.inputs.push_back(value_of(input));
  for (const pb::ValueInfoProto& output : graph.output())
    summary.outputs.push_back(value_of(output));
  for (const pb::NodeProto& node : graph.node())
    ++summary.operators[is_default_domain(node.domain()) ? node.op_type()
                                                         : node.domain() + "." + node.op_type()];
  return summary;
}

}  // namespace pantala::onnx
