// The host's part of a step: what depends on hyper-parameters and counters alone (bias corrections,
// learning rates, random counters), evaluated in double once a step and handed to kernels as
// uniforms. As in the interpreter, casts between float types are identities and integers wrap to
// their type; a uniform is rounded to its dtype at the end. Nothing is allocated while it runs.
//
// Kept as a small graph of scalars, so that the plan cache can store its text form: the outputs
// `uniform.<number>.<dtype>` and `output.<name>` and the updates of that graph are what it
// computes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/number.h"
#include "ir/op.h"
#include "pantala/graph.h"

namespace pantala::plan {

// The part of a graph that the given scalar values need.
struct HostRequest {
  std::vector<std::pair<ValueId, DType>> uniforms = {};  // in the order of Plan::uniforms
  // Graph outputs that the host computes.
  std::vector<std::pair<std::string, ValueId>> outputs = {};
  std::vector<std::pair<std::string, ValueId>> updates = {};  // counter leaf, new value
};

class HostPart {
 public:
  HostPart() = default;
  // InternalError for a value that is no scalar, or that depends on an input, a parameter or an op
  // that the host cannot evaluate.
  HostPart(const Graph& graph, const HostRequest& request);
  // From text(): throws ParseError.
  static HostPart parse(std::string_view text, std::string_view file);
  std::string text() const;

  // Scalars (hyper-parameters) and counters that it reads or updates.
  struct Leaf {
    LeafKind kind = LeafKind::scalar;
    std::string name;
    DType dtype = DType::f64;
    friend bool operator==(const Leaf&, const Leaf&) = default;
  };
  const std::vector<Leaf>& leaves() const { return leaves_; }
  std::size_t uniforms() const { return uniforms_.size(); }
  // Indices into leaves() of those that advance() changes.
  std::vector<std::size_t> updated_leaves() const;
  const std::vector<std::string>& output_names() const { return output_names_; }

  // `values` are those of leaves(), in order. Fills the slots (slot_of) of the uniforms.
  void evaluate(std::span<const ir::Number> values, std::span<std::int64_t> slots);
  // After evaluate(): a host output, and the new value of every leaf (unchanged ones as they were).
  ir::Number output(std::size_t index) const;
  DType output_dtype(std::size_t index) const { return outputs_[index].second; }
  void advance(std::span<ir::Number> values) const;

 private:
  struct Step {
    ir::ScalarFn function;
    std::vector<std::uint32_t> inputs;
    std::uint32_t result = 0;
    DType dtype = DType::f64;  // integers wrap to it
  };
  // Registers and steps of graph_, one register per node.
  void build();
  void add_node(std::uint32_t id);

  Graph graph_;
  std::vector<Leaf> leaves_;
  std::vector<std::uint32_t> leaf_registers_;
  std::vector<Step> steps_;
  std::vector<ir::Number> registers_;
  std::vector<ir::Number> arguments_;  // of the step that is running
  std::vector<std::pair<std::uint32_t, DType>> uniforms_;
  std::vector<std::string> output_names_;
  std::vector<std::pair<std::uint32_t, DType>> outputs_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> updates_;  // leaf, register
};

}  // namespace pantala::plan
