#include "schedule/common/conv/problem.h"

#include "ops/face.h"
#include "schedule/append.h"
#include "schedule/company.h"

namespace pantala::schedule {

namespace {

struct Shapes {
  Shape x, weight;
};
Shapes shapes_of(const Context& context, const ir::Node& node, ConvDirection direction) {
  const Shape &first = context.type(node.inputs[0]).shape,
              &second = context.type(node.inputs[1]).shape, &result = node.results[0].shape;
  switch (direction) {
    case ConvDirection::forward:
      return {first, second};
    case ConvDirection::input_grad:
      return {result, second};
    case ConvDirection::weight_grad:
      break;
  }
  return {first, result};
}

}  // namespace

std::int64_t ConvSizes::taps() const {
  std::int64_t product = 1;
  for (const ConvAxis& a : axes) product *= a.kernel;
  return product;
}
std::int64_t ConvSizes::positions() const {
  std::int64_t product = batch;
  for (const ConvAxis& a : axes) product *= a.y();
  return product;
}

ConvDirection direction_of(const ir::OpDef& op) {
  if (ops::is<op::Convolution>(op)) return ConvDirection::forward;
  return ops::is<op::ConvolutionInputGrad>(op) ? ConvDirection::input_grad
                                               : ConvDirection::weight_grad;
}

op::ConvAttrs window_of(const ir::Node& node) {
  switch (direction_of(*node.op)) {
    case ConvDirection::forward:
      return ir::attributes<op::Convolution>(node);
    case ConvDirection::input_grad:
      return ir::attributes<op::ConvolutionInputGrad>(node).window;
    case ConvDirection::weight_grad:
      break;
  }
  return ir::attributes<op::ConvolutionWeightGrad>(node).window;
}

ConvSizes sizes_of(const Context& context, const ir::Node& node) {
  const Shapes shapes = shapes_of(context, node, direction_of(*node.op));
  ConvSizes sizes;
  sizes.batch = shapes.x[0];
  sizes.in = shapes.x[1];
  sizes.out = shapes.weight[0];
  const op::ConvAttrs window = window_of(node);
  sizes.groups = window.groups;
  for (int k = 2; k < shapes.x.rank(); ++k) {
    const auto axis = static_cast<std::size_t>(k - 2);
    sizes.axes.push_back({shapes.x[k], shapes.weight[k], window.stride[axis], window.padding[axis],
                          window.dilation[axis]});
  }
  return sizes;
}

double flops_of(const ConvSizes& sizes) {
  const double taps =
      static_cast<double>(sizes.taps()) * static_cast<double>(sizes.in / sizes.groups);
  return 2 * taps * static_cast<double>(sizes.positions()) * static_cast<double>(sizes.out);
}

ElementwiseBody epilogue_body(const Context& context, std::uint32_t node,
                              const std::vector<GroupOutput>& outputs) {
  return make_body(context, outputs, {context.node(node).results[0].shape.vec()},
                   [node](ValueId value) { return value.node == node; });
}

namespace {

bool conv_must_store(const Context& context, std::uint32_t node, std::size_t operand,
                     const IsStored& is_stored) {
  return !is_stored(context.node(node).inputs[operand]);
}

Reads reads_of_conv(const Context& context, const ValueInfo&, std::uint32_t node) {
  const ir::Node& n = context.node(node);
  return reads_whole(n.results[0].shape, n.inputs);
}

// The images on either side of the kernel, not the kernel itself.
std::vector<ValueId> images_of_conv(const Context& context, std::uint32_t node) {
  const ir::Node& n = context.node(node);
  if (window_of(n).algorithm == "planar") return {};
  if (direction_of(*n.op) == ConvDirection::weight_grad) return {n.inputs[0], n.inputs[1]};
  return {{node, 0}, n.inputs[0]};
}

}  // namespace

Archetype conv_row() {
  return {
      .name = "conv",
      .ops = {&ops::def<op::Convolution>(), &ops::def<op::ConvolutionInputGrad>(),
              &ops::def<op::ConvolutionWeightGrad>()},
      .append = append_widened,
      .must_store = conv_must_store,
      .reads = reads_of_conv,
      .can_join = [](const Company& company) { return company.is_epilogue(); },
      .channels_last = images_of_conv,
  };
}

}  // namespace pantala::schedule
