// The interpreter: evaluates any graph in double precision, obviously rather than fast. It is the truth that every device is tested against.
// Floats of any dtype are held in double, casts between float types are identities, integers wrap to their type.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pantala/graph.h"

namespace pantala::ref {

// Values of leaves by name. Parameters and states that are missing take their first value under `seed`, scalars their own value.
using Bindings = std::map<std::string, Literal, std::less<>>;

// The values of the given tensors. TypeError for a missing input, a wrong type or an unknown name; ValueError for an index out of range.
std::vector<Literal> evaluate(const Graph& graph, const std::vector<Tensor>& values, const Bindings& bindings, std::uint64_t seed = 0);

// Carries parameters, state and scalars of a graph from step to step.
class Session {
 public:
  explicit Session(Graph graph, std::uint64_t seed = 0);

  void set_input(std::string_view name, Literal value);
  void set_scalar(std::string_view name, double value);
  // A parameter or a state.
  void set_value(std::string_view name, Literal value);
  const Literal& value(std::string_view name) const;
  double scalar(std::string_view name) const;

  // Keeps the values of these tensors when a step is run; read them with `observed`.
  void observe(const std::vector<Tensor>& tensors);
  // Evaluates all outputs, updates and observed values, then applies the updates together.
  void step();
  // Evaluates outputs only: nothing changes.
  void run();
  const Literal& output(std::string_view name) const;
  double output_scalar(std::string_view name) const;
  const Literal& observed(const Tensor& tensor) const;

  const Graph& graph() const { return graph_; }

 private:
  void evaluate_all(bool with_updates);
  Tensor leaf(std::string_view name, std::initializer_list<LeafKind> kinds, std::string_view what) const;
  void bind(std::string_view name, const Tensor& leaf, Literal value);

  Graph graph_;
  Bindings bindings_;
  std::vector<ValueId> observed_ids_;
  std::map<ValueId, Literal> observed_;
  std::map<std::string, Literal, std::less<>> outputs_;
};

}  // namespace pantala::ref
