// Tensor: a handle to one value of a graph. Operand: what an operator or op function accepts, a
// Tensor or a plain number, with the place in the user's source where it was written; shape errors
// are reported at that place.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <source_location>
#include <string>
#include <type_traits>
#include <vector>

#include "pantala/error.h"
#include "pantala/shape.h"

namespace pantala {

namespace ir {
class GraphData;
}

using Where = std::source_location;

// A result of a node: ids are indices into the graph that made them.
struct ValueId {
  std::uint32_t node = 0;
  std::uint32_t result = 0;
  friend auto operator<=>(const ValueId&, const ValueId&) = default;
};

class Tensor {
 public:
  Tensor() = default;
  Tensor(std::shared_ptr<ir::GraphData> graph, ValueId id) : graph_(std::move(graph)), id_(id) {}

  bool valid() const { return graph_ != nullptr; }
  ValueId id() const { return id_; }
  const std::shared_ptr<ir::GraphData>& graph() const { return graph_; }
  const Type& type() const;
  const Shape& shape() const { return type().shape; }
  DType dtype() const { return type().dtype; }
  int rank() const { return shape().rank(); }
  // The size of one axis; negative axes count from the end.
  std::int64_t dim(int axis) const;
  std::int64_t numel() const { return shape().numel(); }

  // The same value of the same graph.
  friend bool operator==(const Tensor& a, const Tensor& b) {
    return a.graph_ == b.graph_ && a.id_ == b.id_;
  }

 private:
  std::shared_ptr<ir::GraphData> graph_;
  ValueId id_;
};

class Operand {
 public:
  Operand(const Tensor& tensor, Where where = Where::current()) : tensor_(tensor), where_(where) {}
  template <class Number>
    requires std::is_arithmetic_v<Number>
  Operand(Number number, Where where = Where::current())
      : number_(static_cast<double>(number)), is_number_(true), where_(where) {}

  // An empty handle is neither: it must not pass for the number 0.
  bool is_tensor() const { return tensor_.valid(); }
  bool is_number() const { return is_number_; }
  const Tensor& tensor() const;  // TypeError for a number or an empty handle
  double number() const { return number_; }
  Where where() const { return where_; }

 private:
  Tensor tensor_;
  double number_ = 0;
  bool is_number_ = false;
  Where where_;
};

}  // namespace pantala
