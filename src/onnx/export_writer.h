// Writing a graph as ONNX nodes: GraphWriter keeps the names of values and makes constants when
// they are asked for; NodeWriter is one node of the graph as the rules (export_rules.h) see it.
//
// What depends on constants alone is computed here and becomes an initialiser, as late as possible:
// a number that is spread over a shape stays a number wherever ONNX broadcasts.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ir/face.h"
#include "ir/graph_data.h"
#include "pantala/graph.h"

namespace pantala::onnx {

namespace pb = ::onnx;

using Names = std::vector<std::string>;
using ExportAttr = std::variant<std::int64_t, double, ir::Ints, std::string>;
using ExportAttrs = std::vector<std::pair<std::string, ExportAttr>>;

class GraphWriter {
 public:
  // `graph` has only leaves, ops with a rule, and what is constant; `taken` are names that values
  // inside must not have.
  GraphWriter(const Graph& graph, pb::GraphProto& proto, std::int64_t opset,
              std::set<std::string> taken);

  std::int64_t opset() const { return opset_; }
  const ir::GraphData& graph() const { return *graph_.data(); }

  // The name of a value that has been written, or that is constant.
  std::string name(ValueId id);
  void define(ValueId id, const std::string& name) { names_[id] = name; }
  // A node with one result; its name.
  std::string add(const std::string& op, const Names& inputs, const ExportAttrs& attrs = {});
  // The name of a further result of the node that made the first one.
  std::string second_result(const std::string& first);
  std::string constant(const Literal& value);
  std::string numbers(const ir::Ints& values);  // i64 [n]
  std::string scalar(double value, DType dtype);

  // A name that nothing else has.
  std::string fresh(std::string_view stem);
  bool is_constant(ValueId id) const { return constant_[id.node]; }
  // How often a value is read, outputs included.
  int uses(ValueId id) const;
  // Adds an input to the node that made the value; false if that was no node of this operator.
  bool append_input(ValueId id, std::string_view op, const std::string& input);
  // Drops nodes and initialisers that no output needs.
  void prune();

 private:
  std::string write_constant(ValueId id);

  const Graph& graph_;
  pb::GraphProto& proto_;
  std::int64_t opset_;
  std::set<std::string> taken_;
  std::map<std::string, int> counters_;
  std::map<ValueId, std::string> names_;
  std::map<ValueId, int> uses_;
  std::map<std::string, int> makers_;            // of results: the position of the node
  std::map<std::string, std::string> literals_;  // constants by type and bytes
  std::vector<bool> constant_;
};

class NodeWriter {
 public:
  NodeWriter(GraphWriter& graph_writer, std::uint32_t id)
      : writer(graph_writer), node(writer.graph().node(id)), id_(id) {}

  GraphWriter& writer;
  const ir::Node& node;

  int count() const { return static_cast<int>(node.inputs.size()); }
  ValueId input(int i) const { return node.inputs[static_cast<std::size_t>(i)]; }
  std::string in(int i) const { return writer.name(input(i)); }
  const Type& type(int i) const { return writer.graph().type(input(i)); }
  const Shape& shape(int i) const { return type(i).shape; }
  const Type& result_type(int k = 0) const { return node.results[static_cast<std::size_t>(k)]; }
  ValueId result_id(int k = 0) const { return {id_, static_cast<std::uint32_t>(k)}; }
  // The attributes of the node, by the face of its op or by their struct.
  template <class FaceOrAttrs>
  auto attributes() const {
    return ir::attributes<FaceOrAttrs>(node);
  }
  // The inputs of an operator that broadcasts: what was spread only to fit is taken as it was.
  Names broadcast_inputs() const;

  void result(const std::string& name, int k = 0) const { writer.define(result_id(k), name); }
  std::string add(const std::string& op, const Names& inputs, const ExportAttrs& attrs = {}) const {
    return writer.add(op, inputs, attrs);
  }
  // The value in another shape, if it is another one.
  std::string reshaped(const std::string& value, const Shape& from, const Shape& to) const;
  std::string permuted(const std::string& value, const ir::Ints& axes) const;

 private:
  std::uint32_t id_;
};

// A tensor for a file: its type and bytes.
void set_tensor(pb::TensorProto& tensor, const std::string& name, const Type& type);
void set_tensor(pb::TensorProto& tensor, const std::string& name, const Literal& value);
}  // namespace pantala::onnx
