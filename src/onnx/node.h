// One ONNX node while it is translated: its inputs, attributes and results, as the adapters
// (adapters.h) see them.
//
// An input is a tensor of the graph, or a value that is known while the file is read. An adapter
// asks for what it needs: `tensor` for something to compute with (a floating initialiser then
// becomes a parameter), `constant` for something that decides shapes or options. A node whose
// inputs are all known is translated into a graph of its own and evaluated at once, by the same
// adapter.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <variant>
#include <vector>

#include "onnx/node_scope.h"
#include "onnx/proto.h"
#include "pantala/graph.h"
#include "pantala/onnx.h"
#include "pantala/ops.h"

namespace pantala::onnx {

// What a name of the file stands for.
struct Value {
  std::string name;
  Type type;
  std::shared_ptr<const Literal> constant = {};  // known now
  const pb::TensorProto* weight = nullptr;  // a floating initialiser, to be read when asked for
  bool is_state = false;                    // of a weight: not trained
  // Inputs of the graph that decide it, if these are few and nothing else does: they may be bound.
  std::vector<std::string> sources = {};
  Tensor tensor = {};  // in the graph, once somebody asked for it
};
using ValuePtr = std::shared_ptr<Value>;

// A running statistic while a step is put together.
struct Followed {
  Tensor leaf;
  Tensor latest;  // behind the nodes so far; the leaf itself before the first
};

// What all nodes of a file share.
struct Context {
  const ImportOptions& options;
  TensorPlace source;
  std::int64_t opset = 0;
  Graph graph = {};
  Weights weights = {};
  // Elements that may still be computed while the file is read: a small file must not become huge
  // constants. What is beyond stays in the graph.
  std::int64_t elements_left = 0;
  std::unordered_set<std::string> read_names = {};  // by nodes, or as outputs of the graph
  std::vector<std::string> warnings = {};           // of what is not trained as PyTorch would
  std::deque<Followed> followed = {};               // references to its elements stay valid

  // The value as a tensor of the graph.
  Tensor tensor(Value& value);
  // The value as a literal; none for what is known at run time only.
  std::shared_ptr<const Literal> literal(const Value& value) const;
  // The statistic that the value is, or was made of by the nodes before; nullptr for anything but
  // f32 states.
  Followed* find_followed(Value& value);
};

class Node {
 public:
  using Result = std::variant<std::monostate, Tensor, std::shared_ptr<const Literal>, ValuePtr>;

  // `graph` is the context's own one, or one in which a node of constants is evaluated. `in_f32`:
  // tensors of f16 and bf16 come as f32, and the first result becomes what the first input was.
  Node(const pb::NodeProto& proto, std::vector<ValuePtr> inputs, Context& context, Graph& graph,
       bool in_f32 = false);

  const std::string& op() const { return proto_.op_type(); }
  std::int64_t opset() const { return context_.opset; }
  const ImportOptions& options() const { return context_.options; }
  Graph& graph() { return graph_; }
  // True while a node of constants is evaluated.
  bool evaluates() const { return &graph_ != &context_.graph; }

  // PyTorch's newer exporter made it of a call for training (node_scope.h).
  bool is_of_training_call() const;
  bool is_of_detach() const;
  Scopes::EmbeddingCall embedding_call() const;

  // --- inputs; one that is left out (an empty name) is not there
  int inputs() const { return static_cast<int>(inputs_.size()); }
  bool has(int input) const;
  const Type& type(int input) const;
  const Shape& shape(int input) const { return type(input).shape; }
  int rank(int input) const { return shape(input).rank(); }
  DType dtype(int input) const { return type(input).dtype; }
  // Up to version 6 the second input may be aligned with an axis of the first; then it has that
  // shape.
  Tensor tensor(int input);
  std::vector<Tensor> tensors();
  // Whether the number is known and no parameter.
  bool is_constant(int input) const;
  // UnsupportedError, with the advice to bind it, for an input that is not known yet.
  std::shared_ptr<const Literal> constant(int input) const;
  std::vector<std::int64_t> integers(int input) const;
  std::int64_t integer(int input) const;
  double number(int input) const;
  const ValuePtr& value(int input) const;
  Followed* followed(int input) { return context_.find_followed(*value(input)); }

  // --- attributes; TypeError for one of another type
  bool has_attribute(std::string_view name) const;
  std::int64_t attribute(std::string_view name, std::int64_t otherwise) const;
  double attribute(std::string_view name, double otherwise) const;
  std::string attribute(std::string_view name, const std::string& otherwise) const;
  IntList integers(std::string_view name, const IntList& otherwise) const;
  std::vector<double> numbers(std::string_view name) const;
  std::vector<std::string> texts(std::string_view name) const;
  const pb::TensorProto* tensor_attribute(std::string_view name) const;
  Literal read(const pb::TensorProto& tensor) const;
  // A list that older versions have as an attribute and newer ones as an input; empty if neither is
  // there.
  IntList integers(int input, std::string_view attribute) const;

  // --- results
  int results() const { return static_cast<int>(results_.size()); }
  bool wants(int result) const;  // whether anybody reads it
  void give(const Tensor& value) { give(0, value); }
  void give(int result, const Tensor& value);
  void give_constant(int result, Literal value);
  void give_value(int result, const ValuePtr& value);
  const std::vector<Result>& given() const { return results_; }

  // A new axis counts from the end if it is negative; TypeError if it is out of range.
  int axis(std::int64_t axis, int rank) const;
  // A list of numbers as a constant of the graph; the number of elements was checked before.
  Tensor index_constant(const std::vector<std::int64_t>& values, const Shape& shape);
  // Before memory is taken for that many elements: UnsupportedError if these are too many for the
  // file.
  void spend_elements(std::int64_t count);

  // For users who train the model.
  void warn(const std::string& text);
  [[noreturn]] void unsupported(const std::string& reason) const;
  [[noreturn]] void fail(const std::string& reason) const;

 private:
  const pb::AttributeProto* find(std::string_view name, int type) const;
  Tensor aligned(const Tensor& second) const;

  const pb::NodeProto& proto_;
  std::vector<ValuePtr> inputs_;
  std::vector<Result> results_;
  Context& context_;
  Graph& graph_;
  bool in_f32_;
};

// "Conv 'conv1'", or by its first result if it has no name.
std::string label_of(const pb::NodeProto& node);

}  // namespace pantala::onnx
