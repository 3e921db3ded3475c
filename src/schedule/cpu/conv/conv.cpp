#include "schedule/cpu/conv/conv.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "ops/conv.h"
#include "ops/face.h"
#include "schedule/append.h"
#include "schedule/building.h"
#include "schedule/company.h"
#include "schedule/cpu/conv/kernel.h"
#include "schedule/cpu/conv/product.h"
#include "schedule/cpu/elementwise.h"
#include "schedule/estimate.h"

namespace pantala::schedule::cpu {

using ir::Ints;
using kir::Var;

namespace {

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
  const op::ConvAttrs window = window_of(node);
  sizes.groups = window.groups;
  for (int k = 2; k < shapes.x.rank(); ++k) {
    const auto axis = static_cast<std::size_t>(k - 2);
    sizes.axes.push_back({shapes.x[k], shapes.weight[k], window.stride[axis], window.padding[axis],
                          window.dilation[axis]});
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

Work work_of_convolution(const Context& context, const Group& group) {
  const std::uint32_t id = group.anchors[0];
  const ir::Node& node = context.node(id);
  Work work = work_of(context, epilogue_body(context, id, group.outputs));
  const double flops = flops_of(sizes_of(node, shapes_of(context, node, direction_of(*node.op))));
  for (const ValueId input : node.inputs) {
    const auto elements = static_cast<double>(context.type(input).shape.numel());
    add_whole(context, context.buffer_of(input), false, flops / 2 / std::max(elements, 1.0), work);
  }
  work.flops += flops;
  return work;
}

// How a convolution is computed.
struct ConvPlan {
  ConvSizes sizes;
  ConvStrides strides;
  ConvSpec spec;
  ConvOrder order;
  bool is_sliced() const { return order.slices > 1; }
};

ConvPlan plan_of(const Context& context, const Group& group) {
  const ir::Node& node = context.node(group.anchors[0]);
  const ConvDirection direction = direction_of(*node.op);
  const DType dtype = node.results[0].dtype;
  const ConvSizes sizes = sizes_of(node, shapes_of(context, node, direction));
  const ConvStrides strides = strides_of(context, node, direction, group.outputs[0].buffer);
  return {sizes, strides, conv_spec(direction, dtype, sizes, strides),
          reduction_order(direction, sizes, dtype, context.target)};
}

ConvTiling tiling_of(const Context& context, const ConvPlan& plan) {
  return choose_conv_tiling(plan.spec, plan.sizes, plan.strides, plan.order, context.target,
                            {.workers = context.options.workers});
}

std::vector<std::int64_t> problem_of(const ConvPlan& plan) {
  const ConvSizes& n = plan.sizes;
  std::vector<std::int64_t> problem{static_cast<std::int64_t>(plan.spec.direction),
                                    static_cast<std::int64_t>(plan.spec.dtype),
                                    n.batch,
                                    n.in,
                                    n.out,
                                    n.groups};
  for (const auto& axis : n.axes)
    problem.insert(problem.end(), {axis.x, axis.kernel, axis.stride, axis.padding, axis.dilation});
  for (const auto* strides : {&plan.strides.x, &plan.strides.weight, &plan.strides.y})
    problem.insert(problem.end(), strides->begin(), strides->end());
  return problem;
}

// How it is computed as a product, if it is to be and can be.
std::optional<ConvProduct> product_of(const Context& context, const Group& group,
                                      const ConvPlan& plan) {
  const ir::Node& node = context.node(group.anchors[0]);
  if (window_of(node).algorithm != "product") return std::nullopt;
  const ir::Ints kernel(static_cast<std::size_t>(plan.sizes.rank() - 2), 1);
  if (plan.sizes.taps() != 1 || !window_of(node).is_pointwise(kernel)) return std::nullopt;
  return conv_product(plan.spec.direction, plan.spec.dtype, plan.sizes, plan.strides,
                      epilogue_body(context, group.anchors[0], group.outputs), context.target);
}

ContractTiling tiling_of(const Context& context, const ConvProduct& product) {
  return choose_tiling(product.spec, product.sizes, product.strides, product.order, context.target,
                       {.workers = context.options.workers});
}

Effort effort_of_product(const EffortSite& at, const ConvProduct& product) {
  const ContractSpec& spec = product.spec;
  const ContractSizes& n = product.sizes;
  const ContractStrides& s = product.strides;
  const int workers = at.context.options.workers;
  constexpr std::int64_t kIsProduct = -1;  // where the other problems have their direction
  return at.memo.of(*at.group.archetype,
                    {kIsProduct, static_cast<std::int64_t>(spec.dtype), spec.a_k_inner,
                     spec.b_k_inner, spec.c_n_inner, n.m, n.n, n.k, s.a_ld, s.b_ld, s.c_ld},
                    [&] {
                      const ContractTiling tiling = tiling_of(at.context, product);
                      const double slowest =
                          estimate(spec, n, s, product.order, tiling, at.context.target, workers);
                      return Effort{.cycles = workers * slowest * at.table.contract,
                                    .items = static_cast<double>(contract_items(n, tiling)),
                                    .is_balanced = true};
                    });
}

std::vector<Effort> efforts_of_convolution(const EffortSite& at) {
  const Context& context = at.context;
  const ConvPlan plan = plan_of(context, at.group);
  if (const auto product = product_of(context, at.group, plan)) {
    Effort effort = effort_of_product(at, *product);
    const ElementwiseBody body = epilogue_body(context, at.group.anchors[0], at.group.outputs);
    effort.cycles += elementwise_cycles(work_of(context, body), at.table);
    return {effort};
  }
  const int workers = context.options.workers;
  Effort effort = at.memo.of(*at.group.archetype, problem_of(plan), [&] {
    const ConvTiling tiling = tiling_of(context, plan);
    const double slowest =
        estimate(plan.spec, plan.sizes, plan.order, tiling, context.target, workers);
    return Effort{
        .cycles = workers * slowest * at.table.conv,
        .items = static_cast<double>(conv_items(plan.spec, plan.sizes, plan.order, tiling)),
        .is_balanced = true};
  });
  const ElementwiseBody body = epilogue_body(context, at.group.anchors[0], at.group.outputs);
  const double finish = elementwise_cycles(work_of(context, body), at.table);
  if (!plan.is_sliced()) {
    effort.cycles += finish;
    return {effort};
  }
  const double lanes = context.target.lanes(plan.spec.dtype);
  const double partials = static_cast<double>(conv_partials(plan.sizes, plan.order)) / lanes;
  return {effort,
          {.cycles = partials * (at.table.vector_access + at.table.vector_op) + finish,
           .items = static_cast<double>(conv_combine_items(plan.sizes))}};
}

// The group's outputs on the sums of a convolution.
class ConvEpilogue {
 public:
  // `result` is the index of the buffer that the kernel itself declares for the first output.
  ConvEpilogue(Building& building, std::uint32_t node, const std::vector<GroupOutput>& outputs,
               int result)
      : context_(building.context()),
        node_(node),
        result_(result),
        body_(epilogue_body(context_, node, outputs)),
        arguments_(building.arguments()) {
    announce(context_, body_, arguments_);
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

  const Context& context_;
  std::uint32_t node_;
  int result_;
  ElementwiseBody body_;
  Arguments arguments_;
  std::optional<BodyEmitter> emitter_;
};

KernelDraft build_product(Building& building, const Group& group, const ConvProduct& product) {
  const Context& context = building.context();
  const std::uint32_t id = group.anchors[0];
  const ir::Node& node = context.node(id);
  const ContractTiling tiling = tiling_of(context, product);
  ConvEpilogue epilogue(building, id, group.outputs, 2);
  epilogue.arguments().take_integers(
      contract_params(product.sizes, product.strides, product.order, tiling));
  ContractHooks hooks;
  hooks.result = epilogue.hook();
  hooks.result.apply = [&, apply = hooks.result.apply](kir::Builder& b, const ResultSite& at) {
    return apply(b, conv_site(product, node.results[0].shape.rank(), at));
  };
  KernelDraft draft;
  draft.name = fmt::format("{}.{}", node.op->name, id);
  draft.flops = 2 * static_cast<double>(product.sizes.m * product.sizes.n) *
                static_cast<double>(product.sizes.k);
  draft.set.items = contract_items(product.sizes, tiling);
  draft.kernel = build_contract("conv_product", product.spec, product.order, tiling, hooks);
  draft.set.buffers = {context.buffer_of(node.inputs[0]), context.buffer_of(node.inputs[1]),
                       group.outputs[0].buffer};
  for (const std::uint32_t buffer : epilogue.arguments().buffers())
    draft.set.buffers.push_back(buffer);
  draft.set.params = epilogue.arguments().params();
  return draft;
}

std::vector<KernelDraft> build_convolution(Building& building, const Group& group) {
  const Context& context = building.context();
  const std::uint32_t id = group.anchors[0];
  const std::vector<GroupOutput>& outputs = group.outputs;
  const ir::Node& node = context.node(id);
  const ConvPlan plan = plan_of(context, group);
  if (const auto product = product_of(context, group, plan))
    return {build_product(building, group, *product)};
  const ConvTiling tiling = tiling_of(context, plan);
  const auto& [sizes, strides, spec, order] = plan;

  ConvEpilogue epilogue(building, id, outputs, plan.is_sliced() ? 1 : 2);
  KernelDraft draft;
  draft.name = fmt::format("{}.{}", node.op->name, id);
  draft.flops = flops_of(sizes);
  draft.set.items = conv_items(spec, sizes, order, tiling);
  draft.set.buffers = {context.buffer_of(node.inputs[0]), context.buffer_of(node.inputs[1])};
  if (!plan.is_sliced()) {
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
  const std::uint32_t partials = building.add_scratch_tensor(
      fmt::format("partial.{}", id), spec.dtype, Shape{conv_partials(sizes, order)});
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

bool must_store(const Context& context, std::uint32_t node, std::size_t operand,
                const IsStored& is_stored) {
  return !is_stored(context.node(node).inputs[operand]);
}

Reads reads_of_operands(const Context& context, const ValueInfo&, std::uint32_t node) {
  const ir::Node& n = context.node(node);
  return reads_whole(n.results[0].shape, n.inputs);
}

// The images on either side of the kernel, not the kernel itself.
std::vector<ValueId> images_of(const Context& context, std::uint32_t node) {
  const ir::Node& n = context.node(node);
  if (direction_of(*n.op) == ConvDirection::weight_grad) return {n.inputs[0], n.inputs[1]};
  return {{node, 0}, n.inputs[0]};
}

ReductionOrder order_of_node(const Context& context, std::uint32_t id) {
  const ir::Node& node = context.node(id);
  const ConvDirection direction = direction_of(*node.op);
  const ConvOrder order =
      reduction_order(direction, sizes_of(node, shapes_of(context, node, direction)),
                      node.results[0].dtype, context.target);
  return {"conv",
          {order.channels, order.taps, order.box[0], order.box[1], order.box[2], order.box[3],
           order.slices, order.slice_blocks}};
}

}  // namespace

const Archetype& conv_archetype() {
  static const Archetype row{
      .name = "conv",
      .ops = {&ops::def<op::Convolution>(), &ops::def<op::ConvolutionInputGrad>(),
              &ops::def<op::ConvolutionWeightGrad>()},
      .append = append_widened,
      .must_store = must_store,
      .reads = reads_of_operands,
      .can_join = [](const Company& company) { return company.is_epilogue(); },
      .channels_last = images_of,
      .reduction_order = order_of_node,
      .work = work_of_convolution,
      .efforts = efforts_of_convolution,
      .build = build_convolution,
  };
  return row;
}

}  // namespace pantala::schedule::cpu
