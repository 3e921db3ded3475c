#include "schedule/cpu/convolution.h"

#include <fmt/format.h>

#include <optional>

#include "schedule/attributes.h"
#include "schedule/cpu/conv.h"
#include "schedule/cpu/elementwise.h"

namespace pantala::schedule {

using ir::Ints;
using kir::Var;

namespace {

ConvDirection direction_of(const ir::OpDef& op) {
  if (op.name == "convolution") return ConvDirection::forward;
  return op.name == "convolution_input_grad" ? ConvDirection::input_grad
                                             : ConvDirection::weight_grad;
}

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

ConvSizes sizes_of(const ir::Node& node, const Shapes& shapes) {
  ConvSizes sizes;
  sizes.batch = shapes.x[0];
  sizes.in = shapes.x[1];
  sizes.out = shapes.weight[0];
  sizes.groups = attribute<std::int64_t>(node, "groups");
  for (int k = 2; k < shapes.x.rank(); ++k) {
    const auto axis = static_cast<std::size_t>(k - 2);
    sizes.axes.push_back({shapes.x[k], shapes.weight[k], attribute<Ints>(node, "stride")[axis],
                          attribute<Ints>(node, "padding")[axis],
                          attribute<Ints>(node, "dilation")[axis]});
  }
  return sizes;
}

ConvStrides strides_of(const Context& context, const ir::Node& node, ConvDirection direction,
                       std::uint32_t result) {
  const auto first = context.strides(context.buffer_of(node.inputs[0])),
             second = context.strides(context.buffer_of(node.inputs[1])),
             made = context.strides(result);
  switch (direction) {
    case ConvDirection::forward:
      return {first, second, made};
    case ConvDirection::input_grad:
      return {made, second, first};
    case ConvDirection::weight_grad:
      break;
  }
  return {first, made, second};
}

// The group's outputs on the sums of a convolution.
class ConvEpilogue {
 public:
  // `result` is the index of the buffer that the kernel itself declares for the first output.
  ConvEpilogue(Context& context, std::uint32_t node, const std::vector<GroupOutput>& outputs,
               int result)
      : context_(context),
        node_(node),
        result_(result),
        body_(make_body(context, outputs, {context.node(node).results[0].shape.vec()},
                        [node](ValueId value) { return value.node == node; })),
        arguments_(context.info(), context.program.uniforms) {
    announce(context, body_, arguments_);
  }

  Epilogue hook() {
    Epilogue epilogue;
    epilogue.c_access = arguments_.access_of(body_.outputs[0].buffer);
    epilogue.declare = [this](kir::Builder& b) {
      arguments_.assume(body_.outputs[0].buffer, kir::BufferId{result_});
      arguments_.declare_buffers(b);
      emitter_.emplace(b, context_, body_, arguments_);
    };
    epilogue.apply = [this](kir::Builder& b, const ResultSite& at) { return apply(b, at); };
    return epilogue;
  }
  Arguments& arguments() { return arguments_; }
  const ElementwiseBody& body() const { return body_; }

 private:
  Var apply(kir::Builder& b, const ResultSite& at) {
    Site site;
    for (std::size_t d = 0; d < at.coordinates.size(); ++d) site.loops[d] = at.coordinates[d];
    site.lanes = at.value.lanes();
    site.lane_loop = site.lanes == 1 ? -1 : at.lane_dim;
    site.mask = at.mask;
    Emitter& emitter = emitter_->emitter();
    emitter.forget_provided();
    emitter.provide({node_, 0}, body_.at, at.value);
    emitter.enter(site);
    std::vector<Var> values;
    for (const GroupOutput& output : body_.outputs)
      values.push_back(emitter.value(output.value, body_.at));
    for (std::size_t k = 1; k < values.size(); ++k) emitter_->store(k, site, values[k]);
    return values[0].lanes() == site.lanes ? values[0] : b.splat(values[0], site.lanes);
  }

  Context& context_;
  std::uint32_t node_;
  int result_;
  ElementwiseBody body_;
  Arguments arguments_;
  std::optional<BodyEmitter> emitter_;
};

}  // namespace

std::vector<KernelDraft> build_convolution(Context& context, std::uint32_t id,
                                           const std::vector<GroupOutput>& outputs) {
  const ir::Node& node = context.node(id);
  const ConvDirection direction = direction_of(*node.op);
  const ConvSizes sizes = sizes_of(node, shapes_of(context, node, direction));
  const ConvStrides strides = strides_of(context, node, direction, outputs[0].buffer);
  const DType dtype = node.results[0].dtype;
  const ConvSpec spec = conv_spec(direction, dtype, sizes, strides);
  const ConvOrder order = reduction_order(direction, sizes, dtype, context.target);
  ConvNeeds needs;
  needs.workers = context.options.workers;
  const ConvTiling tiling = choose_conv_tiling(spec, sizes, strides, order, context.target, needs);

  const bool sliced = order.slices > 1;
  ConvEpilogue epilogue(context, id, outputs, sliced ? 1 : 2);
  KernelDraft draft;
  draft.name = fmt::format("{}.{}", node.op->name, id);
  const double taps =
      static_cast<double>(sizes.taps()) * static_cast<double>(sizes.in / sizes.groups);
  draft.flops = 2 * taps * static_cast<double>(sizes.positions()) * static_cast<double>(sizes.out);
  draft.set.items = conv_items(spec, sizes, order, tiling);
  draft.set.buffers = {context.buffer_of(node.inputs[0]), context.buffer_of(node.inputs[1])};
  if (!sliced) {
    epilogue.arguments().take_integers(conv_params(spec, sizes, strides, order, tiling));
    ContractHooks hooks;
    hooks.result = epilogue.hook();
    draft.kernel = build_conv("conv", spec, order, tiling, hooks);
    draft.set.buffers.push_back(outputs[0].buffer);
    for (const std::uint32_t buffer : epilogue.arguments().buffers())
      draft.set.buffers.push_back(buffer);
    draft.set.params = epilogue.arguments().params();
    return {std::move(draft)};
  }
  // Slices of a weight gradient are added, with the epilogue, by a second kernel.
  const std::uint32_t partials = context.add_scratch_tensor(fmt::format("partial.{}", id), dtype,
                                                            Shape{conv_partials(sizes, order)});
  draft.kernel = build_conv("conv", spec, order, tiling);
  draft.set.buffers.push_back(partials);
  for (const std::int64_t value : conv_params(spec, sizes, strides, order, tiling))
    draft.set.params.push_back(ParamValue::of(value));

  KernelDraft combine;
  combine.name = fmt::format("{}.{}.combine", node.op->name, id);
  epilogue.arguments().take_integers(conv_combine_params(sizes, strides, order));
  combine.kernel = build_conv_combine("conv_combine", spec, context.target, epilogue.hook());
  combine.set.items = conv_combine_items(sizes);
  combine.set.buffers = {partials, outputs[0].buffer};
  for (const std::uint32_t buffer : epilogue.arguments().buffers())
    combine.set.buffers.push_back(buffer);
  combine.set.params = epilogue.arguments().params();
  return {std::move(draft), std::move(combine)};
}

}  // namespace pantala::schedule
