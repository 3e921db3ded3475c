// OpDef: everything that the system knows about one op, type-erased. The op families (src/ops) fill
// these entries from their declarations; graph, printer, parser, autodiff, interpreter,
// documentation and the generated tests read them.
//
// An op has one meaning: `scalar` (a function of numbers, applied to each element), `eval` (a
// function of whole tensors), or `expand` (a definition in terms of other ops). An op with `scalar`
// and `expand` is a pointwise composite. A `sugar` op is expanded as soon as it is built and never
// becomes a node.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <typeinfo>
#include <vector>

#include "ir/attribute.h"
#include "ir/number.h"
#include "pantala/graph.h"
#include "pantala/tensor.h"

namespace pantala::ir {

struct OpDef;
struct Provenance;

// A parsed signature such as "(x, weight, bias?) -> (y, mean)" or "(xs...) -> y".
struct ArgSpec {
  std::string name;
  bool optional = false;
  bool variadic = false;
};

// The shape rule: reads input types and attributes, sets result types, may normalise attributes
// (negative axes, -1 sizes).
class InferContext {
 public:
  InferContext(const OpDef& op, std::span<const Type> inputs, AttrValues attrs)
      : op_(op), inputs_(inputs), attrs_(std::move(attrs)) {}

  int count() const { return static_cast<int>(inputs_.size()); }
  bool has(int i) const { return i < count(); }
  const Type& in(int i) const { return inputs_[static_cast<std::size_t>(i)]; }
  const Shape& shape(int i) const { return in(i).shape; }
  void result(Type type) { results_.push_back(std::move(type)); }
  // Throws the TypeError of this op; the caller adds the op's name and place.
  [[noreturn]] void fail(const std::string& message) const;
  // "x f32[2,3], weight f32[4]": all inputs with their names, for messages.
  std::string describe_inputs() const;
  std::string name_of(int i) const;

  // Checks that many rules share.
  void require_float(int i) const;
  void require_integer(int i) const;
  void require_dtype(int i, DType dtype) const;
  void require_rank(int i, int rank) const;
  void require_shape(int i, const Shape& shape) const;
  void require_same_dtype(int i, int j) const;
  // A negative axis counts from the end; out of range is an error.
  std::int64_t axis(std::int64_t axis, int rank) const;
  // All axes normalised, sorted and different; an empty list means all axes.
  Ints axes(const Ints& axes, int rank) const;

  const OpDef& op() const { return op_; }
  AttrValues& attrs() { return attrs_; }
  std::vector<Type>& results() { return results_; }

 private:
  const OpDef& op_;
  std::span<const Type> inputs_;
  AttrValues attrs_;
  std::vector<Type> results_;
};

// The inputs of a definition being expanded, as tensors.
class ExpandContext {
 public:
  explicit ExpandContext(std::span<const Tensor> inputs) : inputs_(inputs) {}
  int count() const { return static_cast<int>(inputs_.size()); }
  bool has(int i) const { return i < count(); }
  const Tensor& in(int i) const { return inputs_[static_cast<std::size_t>(i)]; }
  std::vector<Tensor> all() const { return {inputs_.begin(), inputs_.end()}; }

 private:
  std::span<const Tensor> inputs_;
};

// The inputs of an op being interpreted, as literals.
class EvalContext {
 public:
  EvalContext(std::span<const Literal* const> inputs, std::span<const Type> results)
      : inputs_(inputs), results_(results) {}
  int count() const { return static_cast<int>(inputs_.size()); }
  bool has(int i) const { return i < count(); }
  const Literal& in(int i) const { return *inputs_[static_cast<std::size_t>(i)]; }
  const Type& result_type(int i = 0) const { return results_[static_cast<std::size_t>(i)]; }

 private:
  std::span<const Literal* const> inputs_;
  std::span<const Type> results_;
};

// One node being differentiated: forward inputs and results, the upstream gradients, and where to
// put the gradients of the inputs.
class GradContext {
 public:
  GradContext(std::vector<Tensor> inputs, std::vector<Tensor> results, std::vector<Tensor> upstream,
              std::vector<bool> wanted)
      : inputs_(std::move(inputs)),
        results_(std::move(results)),
        upstream_(std::move(upstream)),
        wanted_(std::move(wanted)),
        gradients_(inputs_.size()) {}
  int count() const { return static_cast<int>(inputs_.size()); }
  bool has(int i) const { return i < count(); }
  const Tensor& in(int i = 0) const { return inputs_[static_cast<std::size_t>(i)]; }
  const Tensor& out(int i = 0) const { return results_[static_cast<std::size_t>(i)]; }
  bool has_dy(int i) const { return upstream_[static_cast<std::size_t>(i)].valid(); }
  // The upstream gradient of a result; zeros where the loss does not use that result.
  Tensor dy(int i = 0) const;
  bool wants(int i) const { return has(i) && wanted_[static_cast<std::size_t>(i)]; }
  // Sets the gradient of input i, computed only if somebody asked for it.
  template <class F>
  void give(int i, F&& make) {
    if (wants(i)) gradients_[static_cast<std::size_t>(i)] = make();
  }
  std::vector<Tensor>& gradients() { return gradients_; }

 private:
  std::vector<Tensor> inputs_, results_, upstream_;
  std::vector<bool> wanted_;
  std::vector<Tensor> gradients_;
};

// An example of an op's use; every generated suite (gradient check, shape rule, round trip,
// documentation) runs over these.
struct SampleInput {
  Shape shape;
  double low = -1, high = 1;  // floats are drawn from here
  DType dtype = f32;          // integers are drawn from [low, high)
  bool distinct = false;      // integers without repetition along the last axis
};
struct Sample {
  std::vector<SampleInput> inputs;
  AttrValues attrs;
};

using ScalarFn = std::function<Number(const Number*)>;

struct OpDef {
  std::string name;
  std::string signature;
  std::string doc;
  std::string onnx;  // the ONNX op of the same meaning, if there is one
  std::string family;
  std::vector<ArgSpec> inputs;
  std::vector<std::string> results;
  std::vector<AttrSpec> attrs;
  const std::type_info* attrs_type = &typeid(NoAttrs);  // the struct of the declaration
  bool sugar = false;
  bool leaf = false;
  bool pointwise = false;  // inputs may be broadcast when the op is built
  // Inputs that carry no derivative: conditions, indices, counters.
  std::vector<int> index_inputs;
  // The gradient rule covers upstream gradients of the first so many results; with others the
  // expansion is differentiated.
  int grad_results = 1 << 20;

  void (*infer)(InferContext&) = nullptr;
  ScalarFn (*scalar)(const AttrValues&) = nullptr;
  std::vector<Tensor> (*expand)(const ExpandContext&, const AttrValues&) = nullptr;
  std::vector<Literal> (*eval)(const EvalContext&, const AttrValues&) = nullptr;
  void (*grad)(GradContext&, const AttrValues&) = nullptr;
  std::vector<Sample> (*samples)() = nullptr;

  bool differentiable() const { return grad != nullptr || expand != nullptr; }
  bool is_index(int input) const;
  int min_inputs() const;
  int max_inputs() const;                       // -1: any number
  int attr_index(std::string_view name) const;  // -1: no such attribute
};

// Finds an op by name, or nullptr.
using OpLookup = std::function<const OpDef*(std::string_view)>;

// Turns "(x, bias?) -> y" into the argument lists of `op`.
void parse_signature(OpDef& op);

// Checks named attribute values against an op's fields, converts numbers where that is exact, fills
// in defaults.
using NamedAttrs = std::vector<std::pair<std::string, AttrValue>>;
AttrValues bind_attributes(const OpDef& op, const NamedAttrs& given);

}  // namespace pantala::ir
