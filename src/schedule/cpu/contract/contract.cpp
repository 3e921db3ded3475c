#include "schedule/cpu/contract/contract.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "ops/contract.h"
#include "ops/face.h"
#include "pantala/error.h"
#include "schedule/building.h"
#include "schedule/common/contract/contraction.h"
#include "schedule/company.h"
#include "schedule/cpu/contract/kernel.h"
#include "schedule/estimate.h"

namespace pantala::schedule::cpu {

using ir::Ints;
using kir::Var;

namespace {

// The stride of several loops that are walked as one; nothing if they are not.
std::optional<std::int64_t> joint_stride(const Affine& flat, const Domain& domain, int first,
                                         int count) {
  std::int64_t stride = 0, extent = 1;
  for (int d = first + count - 1; d >= first; --d) {
    const std::int64_t size = domain.sizes[static_cast<std::size_t>(d)],
                       coef = flat.coef[static_cast<std::size_t>(d)];
    if (size == 1) continue;
    if (extent == 1)
      stride = coef;
    else if (coef != stride * extent)
      return std::nullopt;
    extent *= size;
  }
  return stride;
}

std::vector<int> loop_range(int first, int count) {
  std::vector<int> list(static_cast<std::size_t>(count));
  std::iota(list.begin(), list.end(), first);
  return list;
}

// An operand that a contraction can read where it lies.
struct ContractOperand {
  ValueId source;  // a stored value, or one that will be
  bool k_inner = true;
  std::int64_t batch = 0, ld = 0;  // strides
};

// `side` 0 or 1 of a contract node; nothing if its elements must be laid out first.
std::optional<ContractOperand> operand_of(const Context& context, std::uint32_t id, int side,
                                          const IsStored& is_stored) {
  const ir::Node& node = context.node(id);
  const Contraction p = contraction_of(context, id);
  if (p.domain.rank() > kMaxLoops) return std::nullopt;
  const int free_first = side == 0 ? p.batch : p.batch + p.m, free_count = side == 0 ? p.m : p.n;
  const int k_first = p.batch + p.m + p.n;
  // Only movement may stand between the operand and what is stored.
  ValueId source = node.inputs[static_cast<std::size_t>(side)];
  while (!is_stored(source)) {
    const ir::Node& mover = context.node(source.node);
    if (!is_movement(*mover.op)) return std::nullopt;
    source = mover.inputs[0];
  }
  const Footprint reads = operand_reads(context, id, side, p, is_stored);
  if (reads.accesses.size() != 1 || !reads.accesses[0].offset_strides.empty()) return std::nullopt;
  const Affine& flat = reads.accesses[0].flat;
  const auto batch = joint_stride(flat, p.domain, 0, p.batch),
             free = joint_stride(flat, p.domain, free_first, free_count),
             k = joint_stride(flat, p.domain, k_first, p.k);
  if (!batch || !free || !k || *free < 0 || *k < 0 || *batch < 0) return std::nullopt;
  if (flat.constant != 0) return std::nullopt;
  const std::int64_t free_size = side == 0 ? p.sizes.m : p.sizes.n;
  ContractOperand operand{source, true, *batch, 0};
  if (context.type(source).shape.numel() == 0) return operand;  // nothing is read
  // An axis of size 1 has any stride.
  if (*k == 1 || p.sizes.k <= 1) {
    operand.ld = *free;
    if (free_size > 1 && *free == 0) return std::nullopt;
  } else if (*free == 1 || free_size <= 1) {
    operand.k_inner = false;
    operand.ld = *k;
    if (*k == 0) return std::nullopt;
  } else {
    return std::nullopt;
  }
  return operand;
}

// The epilogue's loops: one each for batch, m and n, or more if they cannot be walked together.
struct EpilogueLoops {
  std::vector<Loop> batch, m, n;
  bool fit() const { return batch.size() <= 1 && m.size() <= 1 && n.size() <= 1; }
};
EpilogueLoops epilogue_loops(const Contraction& p, const ElementwiseBody& body) {
  const std::vector<Affine> walks = all_walks(body);
  const auto loops = [&](int first, int count) {
    return collapse(body.domain, loop_range(first, count), walks, body.footprint.counted);
  };
  return {loops(0, p.batch), loops(p.batch, p.m), loops(p.batch + p.m, p.n)};
}

// Whether values of the result's shape can be computed in the epilogue: every access must walk the
// axes of m together, and those of n.
bool fits_epilogue(const Context& context, std::uint32_t id,
                   const std::vector<GroupOutput>& outputs) {
  const Contraction p = contraction_of(context, id);
  const ElementwiseBody body = epilogue_body(context, id, p, outputs);
  const EpilogueLoops loops = epilogue_loops(p, body);
  // c needs a contiguous axis.
  const auto contiguous = [&](const std::vector<Loop>& list) {
    return list.empty() || body.writes[0].coef[list[0].dim.index()] == 1;
  };
  return loops.fit() && (contiguous(loops.n) || contiguous(loops.m));
}

ContractOrder order_of(const Context& context, std::uint32_t id, const Contraction& p) {
  const ir::Node& node = context.node(id);
  const auto last = [](const Axes& axes, int rank) {
    return !axes.contracted.empty() && axes.contracted.back() == rank - 1;
  };
  return reduction_order(p.sizes, last(p.a, context.type(node.inputs[0]).shape.rank()),
                         last(p.b, context.type(node.inputs[1]).shape.rank()),
                         node.results[0].dtype, context.target);
}

// Too little to share out.
bool is_serial(const Contraction& p) { return flops_of(p) < 65536; }

// How a product and its epilogue are computed. `outputs` are computed from the product, of which
// nothing else is kept; one of them may be the product itself.
struct ContractPlan {
  Contraction p;
  ContractOperand a, b;
  ElementwiseBody body;
  EpilogueLoops loops;
  ContractSpec spec;
  ContractStrides strides;
  ContractOrder order;
  ContractNeeds needs;
};

ContractPlan plan_of(const Context& context, std::uint32_t id,
                     const std::vector<GroupOutput>& outputs) {
  const ir::Node& node = context.node(id);
  const Contraction p = contraction_of(context, id);
  const auto stored = [&](ValueId value) { return context.is_stored(value); };
  const auto a = operand_of(context, id, 0, stored), b = operand_of(context, id, 1, stored);
  if (!a || !b)
    throw InternalError(fmt::format("schedule: an operand of a product was not laid out: {} and {}",
                                    context.type(node.inputs[0]).str(),
                                    context.type(node.inputs[1]).str()));
  ElementwiseBody body = epilogue_body(context, id, p, outputs);
  EpilogueLoops loops = epilogue_loops(p, body);
  if (!loops.fit()) throw InternalError("schedule: the epilogue does not fit its product");

  // c is the first output; its strides follow from its loops.
  const auto stride = [&](const std::vector<Loop>& list) {
    return list.empty() ? 0 : body.writes[0].coef[list[0].dim.index()];
  };
  ContractSpec spec{node.results[0].dtype, a->k_inner, b->k_inner, true};
  const std::int64_t by_m = stride(loops.m), by_n = stride(loops.n);
  spec.c_n_inner = by_n == 1 || loops.n.empty();
  const ContractStrides strides{
      a->batch, a->ld, b->batch, b->ld, stride(loops.batch), spec.c_n_inner ? by_m : by_n};
  ContractNeeds needs;
  needs.workers = context.options.workers;
  needs.small_epilogue = body.footprint.cost < 12 && outputs.size() == 1;
  const ContractOrder order = order_of(context, id, p);
  return {p, *a, *b, std::move(body), std::move(loops), spec, strides, order, needs};
}

ContractTiling tiling_of(const Context& context, const ContractPlan& plan) {
  return choose_tiling(plan.spec, plan.p.sizes, plan.strides, plan.order, context.target,
                       plan.needs);
}

std::vector<Effort> efforts_of_contraction(const EffortSite& at) {
  const Context& context = at.context;
  const ContractPlan plan = plan_of(context, at.group.anchors[0], at.group.outputs);
  const ContractSpec& spec = plan.spec;
  const ContractSizes& n = plan.p.sizes;
  const ContractStrides& s = plan.strides;
  const int workers = context.options.workers;
  Effort effort = at.memo.of(
      *at.group.archetype,
      {static_cast<std::int64_t>(spec.dtype), spec.a_k_inner, spec.b_k_inner, spec.c_n_inner,
       n.batch, n.m, n.n, n.k, s.a_batch, s.a_ld, s.b_batch, s.b_ld, s.c_batch, s.c_ld,
       plan.needs.small_epilogue},
      [&] {
        const ContractTiling tiling = tiling_of(context, plan);
        const double slowest = estimate(spec, n, s, plan.order, tiling, context.target, workers);
        return Effort{.cycles = workers * slowest * at.table.contract,
                      .items = static_cast<double>(contract_items(n, tiling)),
                      .serial = is_serial(plan.p),
                      .is_balanced = true};
      });
  effort.cycles += elementwise_cycles(work_of(context, plan.body), at.table);
  return {effort};
}

KernelDraft build_contraction(Building& building, std::uint32_t id,
                              const std::vector<GroupOutput>& outputs) {
  const Context& context = building.context();
  const ContractPlan plan = plan_of(context, id, outputs);
  const ContractTiling tiling = tiling_of(context, plan);
  const auto& [p, a, b, body, loops, spec, strides, order, needs] = plan;

  Arguments arguments = building.arguments();
  announce(context, body, arguments);
  std::optional<BodyEmitter> emitter;
  ContractHooks hooks;
  hooks.result.c_access = arguments.access_of(outputs[0].buffer);
  arguments.take_integers(contract_params(p.sizes, strides, order, tiling));
  hooks.result.declare = [&](kir::Builder& builder) {
    arguments.assume(outputs[0].buffer, kir::BufferId{2});
    arguments.declare_buffers(builder);
    emitter.emplace(builder, context, body, arguments);
  };
  hooks.result.apply = [&](kir::Builder&, const ResultSite& at) {
    Site site;
    const auto enter = [&](const std::vector<Loop>& list, Var index) {
      if (!list.empty()) site.loops[list[0].dim.index()] = index;
    };
    enter(loops.batch, at.batch);
    enter(loops.m, at.m);
    enter(loops.n, at.n);
    const std::vector<Loop>& along = at.lanes_along_n ? loops.n : loops.m;
    site.lanes = at.value.lanes();
    if (!along.empty() && site.lanes > 1) site.lane_loop = along[0].dim;
    site.mask = at.mask;
    emitter->emitter().forget_provided();
    emitter->emitter().provide({id, 0}, body.at, at.value);
    emitter->emitter().enter(site);
    std::vector<Var> values;
    for (const GroupOutput& output : outputs)
      values.push_back(emitter->emitter().value(output.value, body.at));
    for (std::size_t k = 1; k < values.size(); ++k) emitter->store(k, site, values[k]);
    return values[0].lanes() == site.lanes
               ? values[0]
               : emitter->emitter().builder().splat(values[0], site.lanes);
  };
  KernelDraft draft;
  draft.kernel = build_contract("contract", spec, order, tiling, hooks);
  draft.name = fmt::format("contract.{}", id);
  draft.set.items = contract_items(p.sizes, tiling);
  draft.set.buffers = {context.buffer_of(a.source), context.buffer_of(b.source), outputs[0].buffer};
  for (const std::uint32_t buffer : arguments.buffers()) draft.set.buffers.push_back(buffer);
  draft.set.params = arguments.params();
  draft.flops = flops_of(p);
  draft.serial = is_serial(p);
  return draft;
}

bool must_store(const Context& context, std::uint32_t node, std::size_t operand,
                const IsStored& is_stored) {
  return !operand_of(context, node, static_cast<int>(operand), is_stored);
}

Reads reads_of_operands(const Context& context, const ValueInfo& info, std::uint32_t node) {
  return reads_whole(context.node(node).results[0].shape,
                     {operand_of(context, node, 0, info.is_stored)->source,
                      operand_of(context, node, 1, info.is_stored)->source});
}

bool can_join_contraction(const Company& company) {
  if (!company.is_epilogue()) return false;
  const MakingScope making(company.context(), company.outputs());
  return fits_epilogue(company.context(), company.anchor()->node, company.outputs());
}

ReductionOrder order_of_node(const Context& context, std::uint32_t node) {
  const ContractOrder order = order_of(context, node, contraction_of(context, node));
  return {"contract", {order.k_block, order.lanes, order.slices}};
}

}  // namespace

const Archetype& contract_archetype() {
  static const Archetype row{
      .name = "contract",
      .ops = {&ops::def<op::Contract>()},
      .append = append_contraction,
      .must_store = must_store,
      .reads = reads_of_operands,
      .can_join = can_join_contraction,
      // Operands, results and what an epilogue reads are walked with one stride along each axis.
      .row_major = true,
      .reduction_order = order_of_node,
      .work = work_of_contraction,
      .efforts = efforts_of_contraction,
      .build =
          [](Building& building, const Group& group) {
            return std::vector{build_contraction(building, group.anchors[0], group.outputs)};
          },
  };
  return row;
}

}  // namespace pantala::schedule::cpu
