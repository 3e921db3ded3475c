#include "schedule/gpu/reduce/reduce.h"

#include <algorithm>
#include <bit>

#include "ops/face.h"
#include "ops/reduce.h"
#include "schedule/common/reduce/company.h"
#include "schedule/estimate.h"
#include "schedule/gpu/reduce/parts.h"

namespace pantala::schedule::gpu {

namespace {

constexpr std::int64_t kShortRow = 32;      // is one thread's
constexpr std::int64_t kFewGroups = 32;     // leave a device idle
constexpr int kRowThreads = 64;             // of a workgroup whose threads have a row each
constexpr std::int64_t kMostThreads = 256;  // of a workgroup that has one row

// Whether neighbouring rows are neighbours in memory, and the elements of a row are not.
bool rows_are_neighbours(const TracedReduce& traced) {
  if (traced.rows.empty() || traced.elements.empty()) return false;
  const std::size_t row = traced.rows.back().dim.index(),
                    element = traced.elements.back().dim.index();
  bool along_rows = false;
  for (const Access& access : traced.footprint.accesses) {
    const bool is_wide = access.flat.coef[row] != 0 && access.flat.coef[element] != 0;
    if (is_wide && access.flat.coef[element] == 1) return false;
    along_rows = along_rows || (is_wide && access.flat.coef[row] == 1);
  }
  return along_rows;
}

struct Way {
  RowSharing sharing;
  bool is_split = false;
};

Way way_of(const Context& context, const TracedReduce& traced) {
  const Target& target = context.target;
  const bool one_pass = traced.levels == 1 && !traced.has_full_outputs();
  Way way;
  way.sharing.by_group = traced.count > kShortRow && !(one_pass && rows_are_neighbours(traced));
  const std::int64_t wanted =
      way.sharing.by_group
          ? static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(
                std::clamp<std::int64_t>(traced.count / 4, target.subgroup_threads, kMostThreads))))
          : kRowThreads;
  way.sharing.threads = static_cast<int>(std::clamp<std::int64_t>(wanted, 2, target.group_threads));
  const std::int64_t rows = total(traced.rows);
  const std::int64_t groups = way.sharing.by_group ? rows : ceil_div(rows, way.sharing.threads);
  // A thread that adds up a long row alone would also lose digits.
  way.is_split =
      one_pass && traced.count > kSumBlock && (groups < kFewGroups || !way.sharing.by_group);
  return way;
}

std::vector<KernelDraft> build_group(Building& building, const Group& group) {
  const Context& context = building.context();
  const TracedReduce traced = trace_group(context, reduction_of(context, group));
  const Way way = way_of(context, traced);
  if (way.is_split) return build_split(building, traced, way.sharing);
  return {build_rows(building, traced, way.sharing)};
}

Work work_of_reduce(const Context& context, const Group& group) {
  const TracedReduce traced = trace_group(context, reduction_of(context, group));
  const Way way = way_of(context, traced);
  Walk walk{.domain = traced.domain};
  if (!way.sharing.by_group && !traced.rows.empty()) {
    walk.lane = traced.rows.back().dim;
    if (!traced.elements.empty()) walk.inner = traced.elements.back().dim;
  } else if (!traced.elements.empty()) {
    walk.lane = traced.elements.back().dim;
  }
  Work work;
  add_reads(context, walk, traced.footprint, work);
  for (const ReduceOutput& output : traced.outputs)
    add_write(context, walk, output.to.buffer, output.write, work);
  work.flops = traced.flops();
  return work;
}

std::vector<Effort> efforts_of_reduce(const EffortSite& at) {
  const TracedReduce traced = trace_group(at.context, reduction_of(at.context, at.group));
  const Way way = way_of(at.context, traced);
  const double rows = static_cast<double>(total(traced.rows));
  Effort effort{
      .cycles = elementwise_cycles(at.work, at.table) + rows * at.table.row * traced.levels,
      .items = way.sharing.by_group ? rows : rows / way.sharing.threads};
  if (!way.is_split) return {effort};
  const double blocks = static_cast<double>(ceil_div(traced.count, kSumBlock));
  effort.items *= blocks;
  return {effort, {.cycles = blocks * rows * at.table.strided, .items = rows / kRowThreads}};
}

ReductionOrder order_of_sum(const Context& context, std::uint32_t) {
  return {"reduce", {kSumBlock, context.target.group_threads, context.target.subgroup_threads}};
}

}  // namespace

const Archetype& reduce_archetype() {
  static const Archetype row{
      .name = "reduce",
      .ops = {&ops::def<op::Sum>(), &ops::def<op::Amax>(), &ops::def<op::Amin>()},
      .reads = reads_of_operand,
      .can_join = [](const Company& company) { return can_join_reduction(company, {}); },
      .shares_kernel = true,
      .makes_in_one_pass = reduces_in_one_pass,
      .reduction_order = order_of_sum,
      .work = work_of_reduce,
      .efforts = efforts_of_reduce,
      .build = build_group,
  };
  return row;
}

}  // namespace pantala::schedule::gpu
