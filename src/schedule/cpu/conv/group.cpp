#include "schedule/cpu/conv/group.h"

#include <fmt/format.h>

namespace pantala::schedule::cpu {

using kir::Var;

namespace {

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

}  // namespace

ConvPlan plan_of(const Context& context, const Group& group) {
  const ir::Node& node = context.node(group.anchors[0]);
  const ConvDirection direction = direction_of(*node.op);
  const DType dtype = node.results[0].dtype;
  const ConvSizes sizes = sizes_of(context, node);
  const ConvStrides strides = strides_of(context, node, direction, group.outputs[0].buffer);
  ConvPlan plan{sizes, strides, conv_spec(direction, dtype, sizes, strides),
                reduction_order(direction, sizes, dtype, context.target)};
  if (direction != ConvDirection::weight_grad) return plan;
  const ElementwiseBody body = epilogue_body(context, group.anchors[0], group.outputs);
  std::vector<int> dims;
  for (int d = 1; d < sizes.rank(); ++d) dims.push_back(d);
  plan.flat = collapse(body.domain, dims, all_walks(body), body.footprint.counted);
  return plan;
}

std::vector<std::int64_t> problem_of(const ConvPlan& plan) {
  const ConvSizes& n = plan.sizes;
  std::vector<std::int64_t> problem{static_cast<std::int64_t>(plan.spec.direction),
                                    static_cast<std::int64_t>(plan.spec.dtype),
                                    n.batch,
                                    n.in,
                                    n.out,
                                    n.groups,
                                    static_cast<std::int64_t>(plan.flat.size())};
  for (const auto& axis : n.axes)
    problem.insert(problem.end(), {axis.x, axis.kernel, axis.stride, axis.padding, axis.dilation});
  for (const auto* strides : {&plan.strides.x, &plan.strides.weight, &plan.strides.y})
    problem.insert(problem.end(), strides->begin(), strides->end());
  return problem;
}

ConvEpilogue::ConvEpilogue(Building& building, std::uint32_t node,
                           const std::vector<GroupOutput>& outputs, int result)
    : context_(building.context()),
      node_(node),
      result_(result),
      body_(epilogue_body(context_, node, outputs)),
      arguments_(building.arguments()) {
  announce(context_, body_, arguments_);
}

Epilogue ConvEpilogue::hook() {
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
Var ConvEpilogue::apply(kir::Builder& b, const ResultSite& at) {
  Site site;
  for (std::size_t d = 0; d < at.coordinates.size(); ++d) site.loops[d] = at.coordinates[d];
  site.lanes = at.value.lanes();
  if (site.lanes > 1) site.lane_loop = LoopId(static_cast<std::size_t>(at.lane_dim));
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

KernelDraft build_combine(const Context& context, const Group& group, const ConvPlan& plan,
                          std::int64_t slices, std::uint32_t partials, ConvEpilogue& epilogue) {
  const std::uint32_t id = group.anchors[0];
  KernelDraft combine;
  combine.name = fmt::format("{}.{}.combine", context.node(id).op->name, id);
  epilogue.arguments().take_integers(
      conv_combine_params(plan.sizes, plan.strides, {.slices = slices}));
  combine.kernel = build_conv_combine("conv_combine", plan.spec, context.target, epilogue.hook());
  combine.set.items = conv_combine_items(plan.sizes);
  combine.set.buffers = {partials, group.outputs[0].buffer};
  for (const std::uint32_t buffer : epilogue.arguments().buffers())
    combine.set.buffers.push_back(buffer);
  combine.set.params = epilogue.arguments().params();
  return combine;
}

Effort effort_of_combine(const EffortSite& at, const ConvPlan& plan, std::int64_t slices,
                         double finish) {
  const double lanes = at.context.target.lanes(plan.spec.dtype);
  const auto partials = static_cast<double>(conv_partials(plan.sizes, {.slices = slices}));
  const auto element = static_cast<double>(dtype_bytes(plan.spec.dtype));
  // Lanes are output channels, whose results lie far from one another.
  const double scattered = plan.spec.result_contiguous
                               ? 0
                               : 2 * partials / static_cast<double>(slices) * at.table.strided;
  return {.cycles =
              partials / lanes * (at.table.vector_access + at.table.vector_op) + scattered + finish,
          .items = static_cast<double>(conv_combine_items(plan.sizes)),
          .own = {{.number = kPartials, .is_write = false, .bytes = partials * element}}};
}

}  // namespace pantala::schedule::cpu
