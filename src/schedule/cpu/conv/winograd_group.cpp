#include "schedule/cpu/conv/winograd_group.h"

#include <fmt/format.h>

namespace pantala::schedule::cpu {

std::optional<WinogradPlan> winograd_of(const ir::Node& node, const ConvPlan& plan) {
  const std::string algorithm = window_of(node).algorithm;
  if (algorithm != "winograd2" && algorithm != "winograd4") return std::nullopt;
  if (!has_winograd(plan.sizes, plan.spec.dtype)) return std::nullopt;
  const WinogradSpec spec = winograd_spec(plan.spec.direction, plan.spec.dtype, plan.sizes,
                                          plan.strides, algorithm == "winograd2" ? 2 : 4);
  const WinogradOrder order = winograd_order(spec, plan.sizes);
  return WinogradPlan{spec, order, winograd_launches(spec, order)};
}

std::optional<WinogradPlan> winograd_of(const Context& context, const Group& group,
                                        const ConvPlan& plan) {
  std::optional<WinogradPlan> winograd = winograd_of(context.node(group.anchors[0]), plan);
  const std::vector<std::int64_t>& w = plan.strides.weight;
  if (!winograd || plan.spec.direction != ConvDirection::weight_grad ||
      winograd->order.slices > 1 || w[1] != 9 || w[2] != 3 || w[3] != 1)
    return winograd;
  const ElementwiseBody body = epilogue_body(context, group.anchors[0], group.outputs);
  const std::vector<Loop> loops =
      collapse(body.domain, {1, 2, 3}, all_walks(body), body.footprint.counted);
  if (loops.size() != 1) return winograd;
  winograd->spec.result_rows = true;
  winograd->kernels_loop = loops[0].dim;
  return winograd;
}

namespace {

WinogradTiling tiling_of(const Context& context, const ConvPlan& plan,
                         const WinogradPlan& winograd) {
  return choose_winograd_tiling(winograd.spec, plan.sizes, winograd.order, context.target,
                                context.options.workers);
}

// Where lanes run along kernels, one loop of the epilogue counts for all of their axes.
Epilogue hook_of(ConvEpilogue& epilogue, const WinogradPlan& winograd) {
  Epilogue hook = epilogue.hook();
  if (!winograd.spec.result_rows) return hook;
  const LoopId loop = winograd.kernels_loop;
  hook.apply = [apply = hook.apply, loop](kir::Builder& b, const ResultSite& at) {
    ResultSite site = at;
    site.coordinates[3] = {};
    site.coordinates[loop.index()] = at.coordinates[3];
    site.lane_dim = static_cast<int>(loop.index());
    return apply(b, site);
  };
  return hook;
}

}  // namespace

namespace {

// The memory that launches pass on: the transformed operands, and the slices of a weight gradient.
std::vector<OwnUse> own_of(WinogradKernel kernel, const ConvPlan& plan, const WinogradSpec& spec,
                           const WinogradOrder& order, const WinogradTiling& tiling) {
  using enum WinogradKernel;
  const WinogradKernel second =
      spec.conv.direction == ConvDirection::weight_grad ? gradient : weight;
  const auto use = [&](int number, bool is_write, WinogradKernel of) {
    const auto elements = winograd_elements(of, spec, plan.sizes, order, tiling);
    // A vector of each point, which lie far from one another.
    return OwnUse{number, is_write, static_cast<double>(elements * dtype_bytes(spec.conv.dtype)),
                  is_write};
  };
  if (kernel == window)
    return tiling.shared_window ? std::vector{use(0, true, window)} : std::vector<OwnUse>{};
  if (kernel == second)
    return tiling.shared_weight ? std::vector{use(1, true, second)} : std::vector<OwnUse>{};
  std::vector<OwnUse> own;
  if (tiling.shared_window) own.push_back(use(0, false, window));
  if (tiling.shared_weight) own.push_back(use(1, false, second));
  if (order.slices > 1) {
    const auto elements = conv_partials(plan.sizes, {.slices = 1});
    own.push_back({kPartials, true, static_cast<double>(elements * dtype_bytes(spec.conv.dtype))});
  }
  return own;
}

}  // namespace

std::vector<Effort> efforts_of_winograd(const EffortSite& at, const ConvPlan& plan,
                                        const WinogradPlan& winograd, double finish) {
  const auto& [spec, order, launches, kernels_loop] = winograd;
  const int workers = at.context.options.workers;
  std::optional<WinogradTiling> known;
  std::vector<Effort> efforts;
  for (const WinogradLaunch& launch : launches) {
    std::vector<std::int64_t> problem = problem_of(plan);
    problem.insert(problem.end(),
                   {spec.side, spec.result_rows, static_cast<std::int64_t>(launch.kernel)});
    efforts.push_back(at.memo.of(*at.group.archetype, problem, [&] {
      if (!known) known = tiling_of(at.context, plan, winograd);
      const WinogradTiling& tiling = *known;
      const double slowest =
          estimate(launch.kernel, spec, plan.sizes, order, tiling, at.context.target, workers);
      // Sums over a slice's tiles are long: their products run better than others.
      const double factor =
          at.table.contract * (launch.kernel == WinogradKernel::weight_gradient ? 0.8 : 1);
      return Effort{.cycles = workers * slowest * factor,
                    .items = static_cast<double>(
                        winograd_items(launch.kernel, spec, plan.sizes, order, tiling)),
                    .is_balanced = true,
                    .own = own_of(launch.kernel, plan, spec, order, tiling)};
    }));
  }
  if (order.slices > 1)
    efforts.push_back(effort_of_combine(at, plan, order.slices, finish));
  else
    efforts.back().cycles += finish;
  return efforts;
}

std::vector<KernelDraft> build_winograd_group(Building& building, const Group& group,
                                              const ConvPlan& plan, const WinogradPlan& winograd) {
  const Context& context = building.context();
  const std::uint32_t id = group.anchors[0];
  const ir::Node& node = context.node(id);
  const auto& [spec, order, launches, kernels_loop] = winograd;
  const WinogradTiling tiling = tiling_of(context, plan, winograd);
  const auto memory = [&](const char* name, std::int64_t elements) {
    return building.add_scratch_tensor(fmt::format("{}.{}", name, id), plan.spec.dtype,
                                       Shape{elements});
  };
  std::uint32_t first = context.buffer_of(node.inputs[0]),
                second = context.buffer_of(node.inputs[1]), result = group.outputs[0].buffer;
  const std::uint32_t operands[] = {first, second};
  const auto transformed = [&](WinogradKernel kernel) {
    return memory("transformed", winograd_elements(kernel, spec, plan.sizes, order, tiling));
  };
  const bool is_weight = plan.spec.direction == ConvDirection::weight_grad;
  if (tiling.shared_window) first = transformed(WinogradKernel::window);
  if (tiling.shared_weight)
    second = transformed(is_weight ? WinogradKernel::gradient : WinogradKernel::weight);
  if (order.slices > 1)
    result = memory("partial", conv_partials(plan.sizes, {.slices = order.slices}));
  ConvEpilogue epilogue(building, id, group.outputs, order.slices > 1 ? 1 : 2);
  std::vector<KernelDraft> drafts;
  for (const auto& [kernel, slice] : launches) {
    const bool makes_window = kernel == WinogradKernel::window,
               is_product =
                   kernel == WinogradKernel::result || kernel == WinogradKernel::weight_gradient,
               has_epilogue = is_product && order.slices == 1;
    KernelDraft draft;
    draft.name = fmt::format("{}.{}{}", node.op->name, id,
                             is_product     ? ""
                             : makes_window ? ".window"
                             : is_weight    ? ".gradient"
                                            : ".weight");
    draft.set.items = winograd_items(kernel, spec, plan.sizes, order, tiling, slice);
    const std::vector<std::int64_t> params =
        winograd_params(kernel, spec, plan.sizes, plan.strides, order, tiling, slice);
    draft.set.buffers =
        is_product ? std::vector{first, second, result}
                   : std::vector{operands[makes_window ? 0 : 1], makes_window ? first : second};
    if (has_epilogue) {
      epilogue.arguments().take_integers(params);
      draft.kernel =
          build_winograd("winograd", kernel, spec, order, tiling, hook_of(epilogue, winograd));
      for (const std::uint32_t buffer : epilogue.arguments().buffers())
        draft.set.buffers.push_back(buffer);
      draft.set.params = epilogue.arguments().params();
    } else if (draft.set.items > 0) {
      draft.kernel = build_winograd("winograd", kernel, spec, order, tiling);
      for (const std::int64_t value : params) draft.set.params.push_back(ParamValue::of(value));
    }
    if (is_product) draft.flops = flops_of(plan.sizes) / static_cast<double>(order.slices);
    drafts.push_back(std::move(draft));
  }
  if (order.slices > 1)
    drafts.push_back(build_combine(context, group, plan, order.slices, result, epilogue));
  return drafts;
}

}  // namespace pantala::schedule::cpu
