// Rules about how a convolution is computed.
#include "ops/conv.h"

#include "ops/table.h"
#include "rewrite/rules/rules.h"

namespace pantala::rewrite {

namespace {

ir::Ints spatial(const Shape& shape) { return {shape.begin() + 2, shape.end()}; }

// Whether a window is one element, and nobody has said yet how it is computed.
bool can_be_product(const op::ConvAttrs& window, const ir::Ints& kernel) {
  return window.algorithm == "direct" && window.is_pointwise(kernel);
}

op::ConvAttrs& window_of(op::ConvAttrs& attributes) { return attributes; }
op::ConvAttrs& window_of(auto& attributes) { return attributes.window; }

// The same sums in another order; which of the two takes less time depends on sizes and layouts.
// `kernel` gives the spatial sizes of the weight.
template <class Face>
Rule as_product(std::string name, const std::string& first, const std::string& second,
                ir::Ints (*kernel)(Fit&)) {
  return {.name = std::move(name),
          .promise = Promise::real,
          .left = named<Face>("conv", any(first), any(second)),
          .worth =
              [=](Fit& f) {
                auto attributes = f.attributes<Face>("conv");
                return can_be_product(window_of(attributes), kernel(f));
              },
          .right =
              [=](Fit& f) {
                auto attributes = f.attributes<Face>("conv");
                window_of(attributes).algorithm = "product";
                return ops::apply(ops::def<Face>(), {f[first], f[second]},
                                  ir::to_values(attributes))[0];
              }};
}

ir::Ints kernel_of_weight(Fit& f) { return spatial(f.type("weight").shape); }
ir::Ints kernel_of_gradient(Fit& f) {
  return f.attributes<op::ConvolutionWeightGrad>("conv").kernel_sizes;
}

}  // namespace

std::vector<Rule> conv_rules() {
  return {as_product<op::Convolution>("convolution-as-product", "x", "weight", kernel_of_weight),
          as_product<op::ConvolutionInputGrad>("convolution-input-gradient-as-product", "dy",
                                               "weight", kernel_of_weight),
          as_product<op::ConvolutionWeightGrad>("convolution-weight-gradient-as-product", "x", "dy",
                                                kernel_of_gradient)};
}

}  // namespace pantala::rewrite
