// Layer: what the layer functions share. While one lives, every node that is made carries the
// layer's name and the line of the user's call (the outermost layer's line, the innermost layer's
// name), and so does every error.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "ir/graph_data.h"
#include "pantala/graph.h"
#include "pantala/ops/movement.h"

namespace pantala::nn {

class Layer {
 public:
  // `kind` is the function's name. TypeError if the name is empty or x is no tensor.
  Layer(std::string_view kind, std::string_view name, const Operand& x);

  const Tensor& x() const { return x_; }
  Graph& graph() { return graph_; }
  // The dotted name of a part.
  std::string part(std::string_view suffix) const { return name_ + "." + std::string(suffix); }
  // Leaves under the layer's name; parameters have the dtype of x unless another is given.
  Tensor parameter(std::string_view suffix, const IntList& sizes, const Initializer& init,
                   std::optional<DType> dtype = {});
  Tensor state(std::string_view suffix, const IntList& sizes, const Initializer& init, DType dtype);

  [[noreturn]] void fail(const std::string& message) const;
  void require_positive(std::int64_t value, std::string_view what) const;
  void require_float() const;
  void require_rank(int rank, std::string_view axes) const;
  void require_eps(double eps) const;
  void require_probability(double value, std::string_view what) const;

 private:
  Shape checked_shape(const IntList& sizes) const;

  std::string kind_, name_;
  Where where_;
  Tensor x_;
  Graph graph_;
  ir::GraphData::Scope scope_;
};

// The first values of PyTorch's linear and convolution layers: uniform within 1 / sqrt(fan_in),
// weight and bias alike.
Initializer default_weight_init();
Initializer default_bias_init(std::int64_t fan_in);

// The message where `value` is no probability.
std::string no_probability(double value, std::string_view what);

}  // namespace pantala::nn
