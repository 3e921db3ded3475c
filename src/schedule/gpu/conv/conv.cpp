#include "schedule/gpu/conv/conv.h"

#include <fmt/format.h>

#include "ops/face.h"
#include "schedule/gpu/conv/windows.h"

namespace pantala::schedule::gpu {

using kir::Var;

namespace {

std::vector<KernelDraft> build_convolution(Building& building, const Group& group) {
  const Context& context = building.context();
  const std::uint32_t id = group.anchors[0];
  const ir::Node& node = context.node(id);
  ConvWindows windows(context, id);
  Product product{.node = id,
                  .name = fmt::format("{}.{}", node.op->name, id),
                  .dtype = node.results[0].dtype,
                  .sizes = windows.product(),
                  .body = epilogue_body(context, id, group.outputs)};
  product.n_inner = windows.direction() == ConvDirection::weight_grad ||
                    context.strides(group.outputs[0])[1] == 1;
  product.announce = [&](Arguments& arguments) { windows.announce(arguments); };
  product.declare = [&](kir::Builder& b, Arguments& arguments) { windows.declare(b, arguments); };
  product.a = [&](Var batch) { return windows.a(batch); };
  product.b = [&](Var batch) { return windows.b(batch); };
  product.declare_site = [&](kir::Builder& b, Arguments& arguments) {
    windows.declare_site(b, arguments);
  };
  product.site = [&](kir::Builder&, Var batch, Var m, Var n) { return windows.site(batch, m, n); };
  return build_product(building, product);
}

Work work_of_convolution(const Context& context, const Group& group) {
  const std::uint32_t id = group.anchors[0];
  const ir::Node& node = context.node(id);
  const ConvWindows windows(context, id);
  const ProductTiling tiling = choose_tiling(windows.product(), context.target);
  const bool is_sliced = tiling.slices > 1;
  Work work =
      work_of(context, epilogue_body(context, id, group.outputs), is_sliced ? 1 : kEveryKernel);
  const double flops = flops_of(sizes_of(context, node));
  for (const ValueId input : node.inputs) {
    const auto elements = static_cast<double>(context.type(input).shape.numel());
    add_whole(context, context.buffer_of(input), false, flops / 2 / std::max(elements, 1.0), work,
              is_sliced ? 0 : kEveryKernel);
  }
  work.flops += flops;
  return work;
}

std::vector<Effort> efforts_of_convolution(const EffortSite& at) {
  const ElementwiseBody body = epilogue_body(at.context, at.group.anchors[0], at.group.outputs);
  return efforts_of_product(ConvWindows(at.context, at.group.anchors[0]).product(), at,
                            at.table.conv, elementwise_cycles(work_of(at.context, body), at.table));
}

ReductionOrder order_of_node(const Context& context, std::uint32_t id) {
  const ProductTiling tiling = choose_tiling(
      conv_product(sizes_of(context, context.node(id)), direction_of(*context.node(id).op)),
      context.target);
  return {"conv", {tiling.slices, tiling.slice}};
}

}  // namespace

const Archetype& conv_archetype() {
  static const Archetype archetype = [] {
    Archetype row = conv_row();
    row.reduction_order = order_of_node;
    row.work = work_of_convolution;
    row.efforts = efforts_of_convolution;
    row.build = build_convolution;
    return row;
  }();
  return archetype;
}

}  // namespace pantala::schedule::gpu
