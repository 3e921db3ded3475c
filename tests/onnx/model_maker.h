// Puts small ONNX models together, node by node; an attribute belongs to the node before it.
#pragma once

#include <google/protobuf/unknown_field_set.h>
#include <onnx/onnx_pb.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace pantala::tests {

using Sizes = std::vector<std::int64_t>;
using Names = std::vector<std::string>;

class ModelMaker {
 public:
  explicit ModelMaker(const std::string& name, std::int64_t opset = 17) {
    model_.set_ir_version(8);
    model_.add_opset_import()->set_version(opset);
    model_.mutable_graph()->set_name(name);
  }

  ModelMaker& input(const std::string& name, const Sizes& sizes,
                    int type = ::onnx::TensorProto::FLOAT) {
    ::onnx::ValueInfoProto& info = *model_.mutable_graph()->add_input();
    info.set_name(name);
    ::onnx::TypeProto::Tensor& tensor = *info.mutable_type()->mutable_tensor_type();
    tensor.set_elem_type(type);
    for (const std::int64_t size : sizes) tensor.mutable_shape()->add_dim()->set_dim_value(size);
    return *this;
  }
  // Of the input that was made last.
  ModelMaker& symbolic(int axis, const std::string& name) {
    ::onnx::GraphProto& graph = *model_.mutable_graph();
    graph.mutable_input(graph.input_size() - 1)
        ->mutable_type()
        ->mutable_tensor_type()
        ->mutable_shape()
        ->mutable_dim(axis)
        ->set_dim_param(name);
    return *this;
  }
  ModelMaker& weight(const std::string& name, const Sizes& sizes) {
    ::onnx::TensorProto& tensor = *model_.mutable_graph()->add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(::onnx::TensorProto::FLOAT);
    std::int64_t count = 1;
    for (const std::int64_t size : sizes) tensor.add_dims(size), count *= size;
    tensor.mutable_raw_data()->resize(static_cast<std::size_t>(count) * sizeof(float), '\x3e');
    return *this;
  }
  ModelMaker& weight(const std::string& name, const Sizes& sizes,
                     const std::vector<float>& values) {
    weight(name, sizes);
    std::string& data = *model_.mutable_graph()
                             ->mutable_initializer(model_.graph().initializer_size() - 1)
                             ->mutable_raw_data();
    std::memcpy(data.data(), values.data(), values.size() * sizeof(float));
    return *this;
  }
  ModelMaker& integers(const std::string& name, const Sizes& values, bool raw = false) {
    ::onnx::TensorProto& tensor = *model_.mutable_graph()->add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(::onnx::TensorProto::INT64);
    tensor.add_dims(std::ssize(values));
    if (raw) {
      tensor.mutable_raw_data()->resize(values.size() * sizeof(std::int64_t));
      std::memcpy(tensor.mutable_raw_data()->data(), values.data(), tensor.raw_data().size());
    } else {
      for (const std::int64_t value : values) tensor.add_int64_data(value);
    }
    return *this;
  }
  ModelMaker& number(const std::string& name, std::int64_t value) {
    integers(name, {value});
    model_.mutable_graph()
        ->mutable_initializer(model_.graph().initializer_size() - 1)
        ->clear_dims();
    return *this;
  }
  ModelMaker& node(const std::string& op, const Names& inputs, const Names& outputs) {
    ::onnx::NodeProto& node = *model_.mutable_graph()->add_node();
    node.set_op_type(op);
    node.set_name(op + "_" + outputs[0]);
    for (const std::string& name : inputs) node.add_input(name);
    for (const std::string& name : outputs) node.add_output(name);
    return *this;
  }
  // Of the node before; the older exporter of PyTorch tells its layer by it.
  ModelMaker& named(const std::string& name) {
    ::onnx::GraphProto& graph = *model_.mutable_graph();
    graph.mutable_node(graph.node_size() - 1)->set_name(name);
    return *this;
  }
  ModelMaker& with(const std::string& name, std::int64_t value) {
    ::onnx::AttributeProto& a = attribute(name, ::onnx::AttributeProto::INT);
    a.set_i(value);
    return *this;
  }
  ModelMaker& with_number(const std::string& name, float value) {
    attribute(name, ::onnx::AttributeProto::FLOAT).set_f(value);
    return *this;
  }
  ModelMaker& with(const std::string& name, const Sizes& values) {
    ::onnx::AttributeProto& a = attribute(name, ::onnx::AttributeProto::INTS);
    for (const std::int64_t value : values) a.add_ints(value);
    return *this;
  }
  ModelMaker& with(const std::string& name, const std::string& value) {
    attribute(name, ::onnx::AttributeProto::STRING).set_s(value);
    return *this;
  }
  ModelMaker& with_float(const std::string& name, float value) {
    attribute(name, ::onnx::AttributeProto::FLOAT).set_f(value);
    return *this;
  }
  // The layer that the node before belongs to, as PyTorch's newer exporter writes it: in a field
  // that is newer than the schema.
  ModelMaker& in_layer(const std::string& layer, const std::string& function = "f") {
    return metadata("pkg.torch.onnx.name_scopes", "['', '" + layer + "', '" + function + "']");
  }
  // In no layer of it.
  ModelMaker& in_network(const std::string& function) {
    return metadata("pkg.torch.onnx.name_scopes", "['', '" + function + "']");
  }
  // The call that the node before is of, with parameters by the names of the signature.
  ModelMaker& called_with(const std::string& arguments) {
    return metadata(
        "pkg.torch.onnx.fx_node",
        "%f : [num_users=1] = call_function[target=f](args = (" + arguments + "), kwargs = {})");
  }
  // The same, of another call than f.
  ModelMaker& of_call(const std::string& target, const std::string& arguments = "") {
    return metadata("pkg.torch.onnx.fx_node",
                    "%f : call_function[target=" + target + "](args = (" + arguments + "))");
  }
  ModelMaker& signature(const std::string& text) {
    constexpr int kMetadataOfGraph = 16;
    model_.mutable_graph()->mutable_unknown_fields()->AddLengthDelimited(
        kMetadataOfGraph, entry("pkg.torch.export.ExportedProgram.graph_signature", text));
    return *this;
  }
  ::onnx::ModelProto made(const Names& outputs) {
    for (const std::string& name : outputs) model_.mutable_graph()->add_output()->set_name(name);
    return model_;
  }

 private:
  static std::string entry(const std::string& key, const std::string& value) {
    ::onnx::StringStringEntryProto entry;
    entry.set_key(key);
    entry.set_value(value);
    return entry.SerializeAsString();
  }
  ModelMaker& metadata(const std::string& key, const std::string& value) {
    constexpr int kMetadataOfNode = 9;
    ::onnx::GraphProto& graph = *model_.mutable_graph();
    graph.mutable_node(graph.node_size() - 1)
        ->mutable_unknown_fields()
        ->AddLengthDelimited(kMetadataOfNode, entry(key, value));
    return *this;
  }
  ::onnx::AttributeProto& attribute(const std::string& name,
                                    ::onnx::AttributeProto::AttributeType type) {
    ::onnx::GraphProto& graph = *model_.mutable_graph();
    ::onnx::AttributeProto& a = *graph.mutable_node(graph.node_size() - 1)->add_attribute();
    a.set_name(name);
    a.set_type(type);
    return a;
  }

  ::onnx::ModelProto model_;
};

}  // namespace pantala::tests
