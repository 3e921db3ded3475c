// Rules about how a convolution is computed.
#include "ops/conv.h"

#include <functional>

#include "ops/table.h"
#include "rewrite/rules/rules.h"

namespace pantala::rewrite {

namespace {

ir::Ints spatial(const Shape& shape) { return {shape.begin() + 2, shape.end()}; }

// Whether a window is one element, and nobody has said yet how it is computed.
bool can_be_product(const op::ConvAttrs& window, const ir::Ints& kernel, DType) {
  return window.algorithm == "direct" && window.is_pointwise(kernel);
}

// Whether a window is one of 3 x 3 in single precision, and nobody has said yet how it is computed.
bool can_be_winograd(const op::ConvAttrs& window, const ir::Ints& kernel, DType dtype) {
  return window.algorithm == "direct" && window.is_square3(kernel) && dtype == DType::f32;
}

op::ConvAttrs& window_of(op::ConvAttrs& attributes) { return attributes; }
op::ConvAttrs& window_of(auto& attributes) { return attributes.window; }

// A convolution or one of its gradients by an algorithm: its name, its operands, and what gives the
// spatial sizes of the weight.
struct Direction {
  std::string name, first, second;
  ir::Ints (*kernel)(Fit&);
};

// The same numbers but for rounding; which of the algorithms takes less time depends on sizes and
// layouts.
template <class Face>
Rule by_algorithm(const Direction& direction, const std::string& algorithm,
                  const std::function<bool(const op::ConvAttrs&, const ir::Ints&, DType)>& fits) {
  return {.name = direction.name + "-" + (algorithm == "product" ? "as" : "by") + "-" + algorithm,
          .promise = Promise::real,
          .left = named<Face>("conv", any(direction.first), any(direction.second)),
          .worth =
              [=](Fit& f) {
                auto attributes = f.attributes<Face>("conv");
                return fits(window_of(attributes), direction.kernel(f), f.type().dtype);
              },
          .right =
              [=](Fit& f) {
                auto attributes = f.attributes<Face>("conv");
                window_of(attributes).algorithm = algorithm;
                return ops::apply(ops::def<Face>(), {f[direction.first], f[direction.second]},
                                  ir::to_values(attributes))[0];
              }};
}

ir::Ints kernel_of_weight(Fit& f) { return spatial(f.type("weight").shape); }
ir::Ints kernel_of_gradient(Fit& f) {
  return f.attributes<op::ConvolutionWeightGrad>("conv").kernel_sizes;
}

}  // namespace

std::vector<Rule> conv_rules() {
  const Direction forward{"convolution", "x", "weight", kernel_of_weight},
      input{"convolution-input-gradient", "dy", "weight", kernel_of_weight},
      weight{"convolution-weight-gradient", "x", "dy", kernel_of_gradient};
  std::vector<Rule> rules;
  const auto add = [&](const std::string& algorithm, const auto& fits) {
    rules.push_back(by_algorithm<op::Convolution>(forward, algorithm, fits));
    rules.push_back(by_algorithm<op::ConvolutionInputGrad>(input, algorithm, fits));
    rules.push_back(by_algorithm<op::ConvolutionWeightGrad>(weight, algorithm, fits));
  };
  add("product", can_be_product);
  add("winograd4", can_be_winograd);
  add("winograd2", can_be_winograd);
  return rules;
}

}  // namespace pantala::rewrite
