// Graph: a hash-consed list of immutable nodes, each `{op, attributes, inputs, result types}`;
// inputs have smaller ids, so the order of ids is an order of evaluation. Nodes are only ever
// appended. Copying a Graph copies its nodes, ids stay equal.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pantala/init.h"
#include "pantala/tensor.h"

namespace pantala {

enum class LeafKind : std::uint8_t { input, parameter, state, scalar };

// What the outside sees of a leaf.
struct Leaf {
  LeafKind kind;
  std::string name;
  Tensor value;
};

class Graph {
 public:
  Graph();
  Graph(const Graph& other);
  Graph& operator=(const Graph& other);
  // What was moved from is an empty graph.
  Graph(Graph&& other) noexcept;
  Graph& operator=(Graph&& other) noexcept;
  explicit Graph(std::shared_ptr<ir::GraphData> data) : data_(std::move(data)) {}

  // Leaves. A name may be used once.
  Tensor input(std::string_view name, const Shape& shape, DType dtype = f32,
               Where where = Where::current());
  Tensor parameter(std::string_view name, const Shape& shape,
                   const Initializer& init = init::zeros(), DType dtype = f32,
                   Where where = Where::current());
  // Carried from step to step: moments, running statistics, counters.
  Tensor state(std::string_view name, const Shape& shape, const Initializer& init = init::zeros(),
               DType dtype = f32, Where where = Where::current());
  // A hyper-parameter: an f64 input with a value of its own, which can be set between steps.
  Tensor scalar(std::string_view name, double value, Where where = Where::current());
  // Every element equal, or all elements given.
  Tensor constant(double value, const Shape& shape = {}, DType dtype = f32,
                  Where where = Where::current());
  Tensor constant(Literal values, Where where = Where::current());
  // Counters of the random ops, made on first use: the run's seed and the number of the
  // micro-batch.
  Tensor rng_seed();
  Tensor rng_draw();

  // Names a value as a result of the graph.
  void output(std::string_view name, const Tensor& value, Where where = Where::current());
  // The value that a parameter or state has after the step.
  void update(const Tensor& leaf, const Tensor& value, Where where = Where::current());

  std::size_t size() const;  // nodes
  std::vector<Leaf> leaves() const;
  std::vector<Leaf> leaves(LeafKind kind) const;
  std::optional<Tensor> find(std::string_view leaf_name) const;
  Tensor leaf(std::string_view name) const;    // TypeError with the nearest name
  Tensor output(std::string_view name) const;  // TypeError with the nearest name
  std::vector<std::pair<std::string, Tensor>> outputs() const;
  std::vector<std::pair<Tensor, Tensor>> updates() const;  // leaf, new value
  // This graph's handle for a value of a graph that it was copied from.
  Tensor value(ValueId id) const;
  // Whether this is a value of the graph, or of one that it is a copy of.
  bool has(const Tensor& value) const;

  // The same nodes with these outputs instead, values of this graph or of one that it is a copy of.
  Graph with_outputs(const std::vector<std::pair<std::string, Tensor>>& outputs) const&;
  Graph with_outputs(const std::vector<std::pair<std::string, Tensor>>& outputs) &&;
  // The same nodes and outputs: running it changes nothing.
  Graph without_updates() const&;
  Graph without_updates() &&;

  // The storage, for the library's own parts.
  const std::shared_ptr<ir::GraphData>& data() { return data_; }
  std::shared_ptr<const ir::GraphData> data() const { return data_; }

 private:
  std::shared_ptr<ir::GraphData> data_;
};

// Checks every invariant of a graph; InternalError on the first that does not hold.
void verify(const Graph& graph);

}  // namespace pantala
