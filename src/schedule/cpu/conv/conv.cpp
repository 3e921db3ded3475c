#include "schedule/cpu/conv/conv.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "ops/face.h"
#include "schedule/cpu/conv/group.h"
#include "schedule/cpu/conv/product.h"
#include "schedule/cpu/conv/winograd_group.h"

namespace pantala::schedule::cpu {

namespace {

ConvTiling tiling_of(const Context& context, const ConvPlan& plan) {
  return choose_conv_tiling(
      plan.spec, plan.sizes, plan.strides, plan.order, context.target,
      {.workers = context.options.workers, .flat_result = plan.flat.size() == 1});
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

// Which kernel of the group reads which operand, and which one has the epilogue.
struct KernelUses {
  std::array<int, 2> operands{kEveryKernel, kEveryKernel};
  int epilogue = kEveryKernel;
  int slices = 1, slice_kernels = 0;  // that read a part of the operands each
};
KernelUses uses_of(const Context& context, const Group& group, const ConvPlan& plan) {
  if (const auto winograd = winograd_of(context.node(group.anchors[0]), plan)) {
    const auto slices = static_cast<int>(winograd->order.slices);
    return {{0, 1}, winograd->kernels() - 1, slices, slices > 1 ? 3 : 0};
  }
  if (product_of(context, group, plan)) return {};
  if (plan.spec.direction != ConvDirection::weight_grad)
    return {{1, 0}, 1};  // the weight is brought into panels first
  return plan.is_sliced() ? KernelUses{{0, 0}, 1} : KernelUses{};
}

Work work_of_convolution(const Context& context, const Group& group) {
  const std::uint32_t id = group.anchors[0];
  const ir::Node& node = context.node(id);
  const ConvPlan plan = plan_of(context, group);
  const KernelUses uses = uses_of(context, group, plan);
  Work work = work_of(context, epilogue_body(context, id, group.outputs), uses.epilogue);
  const double flops = flops_of(plan.sizes);
  for (std::size_t k = 0; k < node.inputs.size(); ++k) {
    const auto elements = static_cast<double>(context.type(node.inputs[k]).shape.numel());
    const double times = flops / 2 / std::max(elements, 1.0);
    for (int slice = 0; slice < uses.slices; ++slice) {
      add_whole(context, context.buffer_of(node.inputs[k]), false, times, work,
                uses.operands[k] + slice * uses.slice_kernels);
      for (double* part :
           {&work.uses.back().elements, &work.uses.back().accesses, &work.uses.back().bytes})
        *part /= uses.slices;
    }
  }
  work.flops += flops;
  return work;
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

// Of the kernel that brings the weight into panels: read, transposed and written.
Effort effort_of_weights(const EffortSite& at, const ConvPlan& plan) {
  constexpr double kTransposed = 8;
  const ConvSizes& n = plan.sizes;
  const auto weights = static_cast<double>(n.out * (n.in / n.groups) * n.taps());
  const double columns = 2.0 * at.context.target.lanes(plan.spec.dtype);
  const auto element = static_cast<double>(dtype_bytes(plan.spec.dtype));
  return {.cycles = weights / columns * 2 * (kTransposed + 2 * at.table.vector_access),
          .items = std::ceil(static_cast<double>(n.out) / columns),
          .own = {{.number = 0, .is_write = true, .bytes = weights * element}}};
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
  if (const auto winograd = winograd_of(context, at.group, plan)) {
    const ElementwiseBody body = epilogue_body(context, at.group.anchors[0], at.group.outputs);
    return efforts_of_winograd(at, plan, *winograd,
                               elementwise_cycles(work_of(context, body), at.table));
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
  if (plan.spec.direction != ConvDirection::weight_grad) {
    effort.cycles += finish;
    const Effort weights = effort_of_weights(at, plan);
    effort.own = {{.number = 0, .is_write = false, .bytes = weights.own[0].bytes}};
    return {weights, effort};
  }
  if (!plan.is_sliced()) {
    effort.cycles += finish;
    return {effort};
  }
  const Effort combine = effort_of_combine(at, plan, plan.order.slices, finish);
  effort.own = {{.number = kPartials, .is_write = true, .bytes = combine.own[0].bytes}};
  return {effort, combine};
}

// The site of the result for one whose lanes run along [c / groups, spatial...].
ResultSite flat_site(const ConvPlan& plan, const ResultSite& at) {
  ResultSite site = at;
  site.coordinates.assign(static_cast<std::size_t>(plan.sizes.rank()), kir::Var());
  site.coordinates[0] = at.coordinates[0];
  const auto along = plan.flat[0].dim.index();
  site.coordinates[along] = at.m;
  site.lane_dim = static_cast<int>(along);
  return site;
}

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

// The weight in panels, which the convolution then reads.
KernelDraft build_weights(Building& building, std::uint32_t id, const ConvPlan& plan,
                          const ConvTiling& tiling) {
  const Context& context = building.context();
  const ir::Node& node = context.node(id);
  const auto& [sizes, strides, spec, order, flat] = plan;
  const std::uint32_t panels = building.add_scratch_tensor(
      fmt::format("panels.{}", id), spec.dtype, Shape{conv_panels(spec, sizes, order, tiling)});
  KernelDraft draft;
  draft.name = fmt::format("{}.{}.weights", node.op->name, id);
  draft.kernel = build_conv_weights("conv_weights", spec, tiling);
  draft.set.items = conv_weights_items(spec, sizes, order, tiling);
  draft.set.buffers = {context.buffer_of(node.inputs[1]), panels};
  for (const std::int64_t value : conv_params(spec, sizes, strides, order, tiling))
    draft.set.params.push_back(ParamValue::of(value));
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
  if (const auto winograd = winograd_of(context, group, plan))
    return build_winograd_group(building, group, plan, *winograd);
  const ConvTiling tiling = tiling_of(context, plan);
  const auto& [sizes, strides, spec, order, flat] = plan;

  ConvEpilogue epilogue(building, id, outputs, plan.is_sliced() ? 1 : 2);
  KernelDraft draft;
  draft.name = fmt::format("{}.{}", node.op->name, id);
  draft.flops = flops_of(sizes);
  draft.set.items = conv_items(spec, sizes, order, tiling);
  draft.set.buffers = {context.buffer_of(node.inputs[0]), context.buffer_of(node.inputs[1])};
  std::vector<KernelDraft> drafts;
  if (spec.direction != ConvDirection::weight_grad) {
    drafts.push_back(build_weights(building, id, plan, tiling));
    draft.set.buffers[1] = drafts[0].set.buffers[1];
  }
  if (!plan.is_sliced()) {
    epilogue.arguments().take_integers(conv_params(spec, sizes, strides, order, tiling));
    ContractHooks hooks;
    hooks.result = epilogue.hook();
    if (tiling.flat_result)
      hooks.result.apply = [&, apply = hooks.result.apply](kir::Builder& b, const ResultSite& at) {
        return apply(b, flat_site(plan, at));
      };
    draft.kernel = build_conv("conv", spec, order, tiling, hooks);
    draft.set.buffers.push_back(outputs[0].buffer);
    for (const std::uint32_t buffer : epilogue.arguments().buffers())
      draft.set.buffers.push_back(buffer);
    draft.set.params = epilogue.arguments().params();
    drafts.push_back(std::move(draft));
    return drafts;
  }
  // Slices of a weight gradient are added, with the epilogue, by a second kernel.
  const std::uint32_t partials = building.add_scratch_tensor(
      fmt::format("partial.{}", id), spec.dtype, Shape{conv_partials(sizes, order)});
  draft.kernel = build_conv("conv", spec, order, tiling);
  draft.set.buffers.push_back(partials);
  for (const std::int64_t value : conv_params(spec, sizes, strides, order, tiling))
    draft.set.params.push_back(ParamValue::of(value));
  return {std::move(draft), build_combine(context, group, plan, order.slices, partials, epilogue)};
}

ReductionOrder order_of_node(const Context& context, std::uint32_t id) {
  const ir::Node& node = context.node(id);
  const ConvDirection direction = direction_of(*node.op);
  const ConvSizes sizes = sizes_of(context, node);
  const DType dtype = node.results[0].dtype;
  const ConvStrides strides = ConvStrides::row_major(sizes);
  if (const auto winograd =
          winograd_of(node, {sizes, strides, conv_spec(direction, dtype, sizes, strides), {}}))
    return {"winograd",
            {winograd->spec.side, winograd->order.channels, winograd->order.tiles,
             winograd->order.slice_tiles}};
  const ConvOrder order = reduction_order(direction, sizes, dtype, context.target);
  return {"conv",
          {order.channels, order.taps, order.box[0], order.box[1], order.box[2], order.box[3],
           order.slices, order.slice_blocks}};
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

}  // namespace pantala::schedule::cpu
