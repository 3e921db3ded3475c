// The reduce archetype in the graph: which ops share the passes over a row, and which of the
// kernels runs them.
#include "schedule/cpu/reduce/reduce.h"

#include <algorithm>
#include <cmath>

#include "ops/face.h"
#include "ops/reduce.h"
#include "schedule/common/reduce/company.h"
#include "schedule/cpu/reduce/parts.h"
#include "schedule/estimate.h"

namespace pantala::schedule::cpu {

namespace {

// The kept loop along which memory is walked element by element, or none.
std::optional<std::size_t> unit_row(const TracedReduce& traced) {
  for (std::size_t k = traced.rows.size(); k-- > 0;)
    if (reads_along(traced, traced.rows[k])) return k;
  return std::nullopt;
}

// Which of the kernels runs a group.
struct Way {
  std::optional<std::size_t> lane_row;  // lanes along this kept loop; none: along the elements
  bool is_split = false;
};

Way way_of(const Context& context, const TracedReduce& traced) {
  const bool one_pass = traced.levels == 1 && !traced.has_full_outputs();
  const int lanes = context.target.lanes(DType::f32);
  const bool along_elements = !traced.elements.empty() && has_lanes(traced, lanes) &&
                              reads_along(traced, traced.elements.back());
  Way way;
  if (one_pass && !along_elements && traced.count > 1) way.lane_row = unit_row(traced);
  if (way.lane_row && traced.rows[*way.lane_row].extent < 4) way.lane_row.reset();
  const std::int64_t rows = total(traced.rows);
  const std::int64_t parallel = way.lane_row ? rows / lanes : rows;
  way.is_split = one_pass && traced.count > kSumBlock && parallel < 16;
  return way;
}

std::vector<KernelDraft> build_reduce(Building& building, const ReduceGroup& group) {
  const TracedReduce traced = trace_group(building.context(), group);
  const Way way = way_of(building.context(), traced);
  if (way.is_split) return build_split(building, traced, way.lane_row);
  if (way.lane_row) return {build_columns(building, traced, *way.lane_row)};
  return {build_rows(building, group, traced)};
}

ReductionOrder order_of_sum(const Context& context, std::uint32_t) {
  return {"reduce", {kSumBlock, context.target.lanes(DType::f32)}};
}

std::vector<KernelDraft> build_group(Building& building, const Group& group) {
  return build_reduce(building, reduction_of(building.context(), group));
}

Work work_of_reduce(const Context& context, const Group& group) {
  const TracedReduce traced = trace_group(context, reduction_of(context, group));
  const Way way = way_of(context, traced);
  Walk walk{.domain = traced.domain, .kernel = way.is_split ? 0 : kEveryKernel};
  if (way.lane_row) {
    walk.lane = traced.rows[*way.lane_row].dim;
    walk.inner = traced.elements.back().dim;
  } else if (!traced.elements.empty() && has_lanes(traced, context.target.lanes(DType::f32))) {
    walk.lane = traced.elements.back().dim;
  }
  Work work;
  add_reads(context, walk, traced.footprint, work);
  if (way.is_split) walk.kernel = 1;
  for (const ReduceOutput& output : traced.outputs)
    add_write(context, walk, output.to.buffer, output.write, work);
  work.flops = traced.flops();
  return work;
}

std::vector<Effort> efforts_of_reduce(const EffortSite& at) {
  const TracedReduce traced = trace_group(at.context, reduction_of(at.context, at.group));
  const Way way = way_of(at.context, traced);
  const double lanes = at.context.target.lanes(DType::f32);
  const double rows = static_cast<double>(total(traced.rows)),
               count = static_cast<double>(traced.count);
  Effort effort{.cycles = elementwise_cycles(at.work, at.table)};
  if (way.lane_row) {
    // Partial sums lie in scratch: each addition waits for the one before it.
    const double waits = way.is_split ? 3.5 : 6;
    effort.cycles += rows * count / lanes * static_cast<double>(traced.reductions.size()) * waits *
                     at.table.vector_access;
    effort.items = std::ceil(rows / lanes);
  } else {
    // Loops that are not one are walked element by element.
    if (!has_lanes(traced, at.context.target.lanes(DType::f32))) effort.cycles *= lanes;
    effort.cycles += rows * at.table.row * traced.levels;
    effort.items = rows;
  }
  effort.serial = at.work.flops < 16384;
  if (!way.is_split) return {effort};
  const double blocks = std::ceil(count / static_cast<double>(kSumBlock));
  effort.items *= blocks;
  const double partials = blocks * rows * static_cast<double>(traced.reductions.size());
  const double bytes = partials * static_cast<double>(dtype_bytes(traced.reductions[0].dtype));
  effort.own = {{.number = 0, .is_write = true, .bytes = bytes}};
  // Lanes are rows, or blocks of a few rows one element at a time.
  return {effort,
          {.cycles = way.lane_row ? partials / lanes * (at.table.vector_access + at.table.vector_op)
                                  : partials * at.table.strided,
           .serial = true,
           .own = {{.number = 0, .is_write = false, .bytes = bytes}}}};
}

}  // namespace

const Archetype& reduce_archetype() {
  static const Archetype row{
      .name = "reduce",
      .ops = {&ops::def<op::Sum>(), &ops::def<op::Amax>(), &ops::def<op::Amin>()},
      .reads = reads_of_operand,
      .can_join =
          [](const Company& company) { return can_join_reduction(company, {.is_one_loop = true}); },
      .shares_kernel = true,
      .makes_in_one_pass = reduces_in_one_pass,
      .reduction_order = order_of_sum,
      .work = work_of_reduce,
      .efforts = efforts_of_reduce,
      .build = build_group,
  };
  return row;
}

}  // namespace pantala::schedule::cpu
