// Rules about how a convolution is computed.
#include "ops/conv.h"

#include "ops/table.h"
#include "rewrite/rules/rules.h"

namespace pantala::rewrite {

namespace {

const Pattern x = any("x"), weight = any("weight"), dy = any("dy");

ir::Ints spatial(const Shape& shape) { return {shape.begin() + 2, shape.end()}; }

// Whether a window is one element, and nobody has said yet how it is computed.
bool can_be_product(const op::ConvAttrs& window, const ir::Ints& kernel) {
  return window.algorithm == "direct" && window.is_pointwise(kernel);
}

template <class Face, class Attrs>
Tensor with_attributes(const std::vector<Operand>& operands, const Attrs& attributes) {
  return ops::apply(ops::def<Face>(), operands, ir::to_values(attributes))[0];
}

}  // namespace

// The same sums in another order; which of the two takes less time depends on sizes and layouts.
std::vector<Rule> conv_rules() {
  return {
      {.name = "convolution-as-product",
       .promise = Promise::real,
       .left = named<op::Convolution>("conv", x, weight),
       .worth =
           [](Fit& f) {
             return can_be_product(f.attributes<op::Convolution>("conv"),
                                   spatial(f.type("weight").shape));
           },
       .right =
           [](Fit& f) {
             auto attributes = f.attributes<op::Convolution>("conv");
             attributes.algorithm = "product";
             return with_attributes<op::Convolution>({f["x"], f["weight"]}, attributes);
           }},
      {.name = "convolution-input-gradient-as-product",
       .promise = Promise::real,
       .left = named<op::ConvolutionInputGrad>("conv", dy, weight),
       .worth =
           [](Fit& f) {
             return can_be_product(f.attributes<op::ConvolutionInputGrad>("conv").window,
                                   spatial(f.type("weight").shape));
           },
       .right =
           [](Fit& f) {
             auto attributes = f.attributes<op::ConvolutionInputGrad>("conv");
             attributes.window.algorithm = "product";
             return with_attributes<op::ConvolutionInputGrad>({f["dy"], f["weight"]}, attributes);
           }},
      {.name = "convolution-weight-gradient-as-product",
       .promise = Promise::real,
       .left = named<op::ConvolutionWeightGrad>("conv", x, dy),
       .worth =
           [](Fit& f) {
             const auto attributes = f.attributes<op::ConvolutionWeightGrad>("conv");
             return can_be_product(attributes.window, attributes.kernel_sizes);
           },
       .right =
           [](Fit& f) {
             auto attributes = f.attributes<op::ConvolutionWeightGrad>("conv");
             attributes.window.algorithm = "product";
             return with_attributes<op::ConvolutionWeightGrad>({f["x"], f["dy"]}, attributes);
           }},
  };
}

}  // namespace pantala::rewrite
