// The reduce archetype in the graph: which ops share the passes over a row, and which of the
// kernels runs them.
#include "schedule/cpu/reduce/reduce.h"

#include <algorithm>
#include <cmath>

#include "ops/face.h"
#include "ops/reduce.h"
#include "schedule/company.h"
#include "schedule/cpu/reduce/parts.h"
#include "schedule/estimate.h"

namespace pantala::schedule::cpu {

namespace {

std::int64_t reduced_elements(const ReduceGroup& group) {
  std::int64_t count = 1;
  for (const std::int64_t axis : group.axes) count *= group.full[static_cast<int>(axis)];
  return count;
}

// How a member of a company stands to the rows of the group.
enum class Place : std::uint8_t { reduction, per_row, full, elsewhere };
Place place_of(const Context& context, const ReduceGroup& group, const Piece& piece) {
  if (piece.is_anchor) {
    const ReduceGroup other = reduce_group(context, piece.node);
    return other.full == group.full && other.axes == group.axes ? Place::reduction
                                                                : Place::elsewhere;
  }
  const Shape& shape = context.node(piece.node).results[0].shape;
  if (is_row_shape(group, shape)) return Place::per_row;
  return is_full_shape(group, shape) ? Place::full : Place::elsewhere;
}

// What a member reads, by the loops of the group.
std::vector<Access> reads_of(const Context& context, const ReduceLoops& loops, const Piece& piece) {
  if (piece.domain.sizes == loops.domain.sizes) return piece.reads;
  const ValueId value =
      piece.is_anchor ? context.node(piece.node).inputs[0] : ValueId{piece.node, 0};
  const MakingScope making(context, {{{piece.node, 0}, kNoBuffer}});
  return trace(context.info(), loops.domain, {value},
               full_indices(loops, context.type(value).shape))
      .accesses;
}

// Whether members read each other at their own element or row.
class Reading {
 public:
  Reading(const Company& company, const ReduceGroup& group)
      : company_(company), group_(group), loops_(loops_of(company.context(), group)) {}

  bool has_loops() const { return loops_.has_value(); }
  bool is_own(const Piece& piece, Place place) const {
    if (place == Place::per_row)
      return std::ranges::all_of(piece.reads, [&](const Access& read) {
        return !company_.reads_inside(read) || company_.is_identity(read, piece.domain);
      });
    const std::vector<Access> reads = reads_of(company_.context(), *loops_, piece);
    return std::ranges::all_of(reads, [&](const Access& read) { return is_own(read); });
  }

 private:
  bool is_own(const Access& read) const {
    if (!company_.reads_inside(read)) return true;
    const Shape& shape = company_.context().type(read.value).shape;
    if (!is_row_shape(group_, shape)) return company_.is_identity(read, loops_->domain);
    const Affine row = flatten(row_indices(group_, *loops_, shape), shape.strides()).affine;
    return read.offset_strides.empty() && read.flat == normalised(row, loops_->domain);
  }

  const Company& company_;
  const ReduceGroup& group_;
  const std::optional<ReduceLoops> loops_;
};

// How many elements an access comes to.
double reached(const TracedReduce& traced, const Access& access) {
  double elements = 1;
  for (std::size_t d = 0; d < traced.domain.sizes.size(); ++d)
    if (access.flat.coef[d] != 0) elements *= static_cast<double>(traced.domain.sizes[d]);
  return elements;
}

// Whether memory is walked element by element along a loop: by one of the accesses that come to
// the most elements. A number per row beside a whole tensor does not count.
bool reads_along(const TracedReduce& traced, const Loop& loop) {
  double most = 0;
  for (const Access& access : traced.footprint.accesses)
    most = std::max(most, reached(traced, access));
  return std::ranges::any_of(traced.footprint.accesses, [&](const Access& access) {
    return access.flat.coef[loop.dim.index()] == 1 && reached(traced, access) == most;
  });
}

// Several passes over few long rows would leave workers idle.
bool are_few_long_rows(const ReduceGroup& group) {
  const std::int64_t rows = group.full.numel() / std::max<std::int64_t>(reduced_elements(group), 1);
  return rows < 8 && group.full.numel() > 16384;
}

bool can_join_reduce(const Company& company) {
  const Context& context = company.context();
  ReduceGroup group = reduce_group(context, company.anchor()->node);
  group.reductions.clear();
  std::vector<Place> places;
  for (const Piece* piece : company.members()) {
    places.push_back(place_of(context, group, *piece));
    if (places.back() == Place::elsewhere) return false;
    if (places.back() == Place::reduction) group.reductions.push_back({piece->node, 0});
  }
  group.outputs = company.outputs();
  const Reading reading(company, group);
  if (!reading.has_loops()) return false;
  bool passes = false;  // more than one pass over the rows
  for (std::size_t k = 0; k < places.size(); ++k) {
    const Piece& piece = *company.members()[k];
    if (!reading.is_own(piece, places[k])) return false;
    passes =
        passes || places[k] == Place::full ||
        (places[k] == Place::reduction && std::ranges::any_of(piece.reads, [&](const Access& read) {
           return company.reads_inside(read);
         }));
  }
  if (!passes) return true;
  if (are_few_long_rows(group)) return false;
  const MakingScope making(context, group.outputs);
  // Passes that reduce have lanes along one loop: tensors may come to lie otherwise than row by
  // row, but not so that it pays. Nor does it where rows lie across memory.
  const TracedReduce traced = trace_group(context, group);
  return traced.elements.empty() ||
         (traced.elements.size() == 1 && reads_along(traced, traced.elements[0]));
}

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

// Several passes over a row may read an element of the full shape after it was overwritten.
bool makes_in_one_pass(const Context& context, const Group& group, ValueId value) {
  const Shape& full = context.type(context.node(group.anchors[0]).inputs[0]).shape;
  return context.type(value).shape.numel() < full.numel();
}

ReductionOrder order_of_sum(const Context& context, std::uint32_t) {
  return {"reduce", {kSumBlock, context.target.lanes(DType::f32)}};
}

ReduceGroup group_of(const Context& context, const Group& group) {
  ReduceGroup reduce = reduce_group(context, group.anchors[0]);
  reduce.reductions.clear();
  for (const std::uint32_t node : group.anchors) reduce.reductions.push_back({node, 0});
  reduce.outputs = group.outputs;
  return reduce;
}

std::vector<KernelDraft> build_group(Building& building, const Group& group) {
  return build_reduce(building, group_of(building.context(), group));
}

Work work_of_reduce(const Context& context, const Group& group) {
  const TracedReduce traced = trace_group(context, group_of(context, group));
  const Way way = way_of(context, traced);
  Walk walk{.domain = traced.domain};
  if (way.lane_row) {
    walk.lane = traced.rows[*way.lane_row].dim;
    walk.inner = traced.elements.back().dim;
  } else if (!traced.elements.empty() && has_lanes(traced, context.target.lanes(DType::f32))) {
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
  const TracedReduce traced = trace_group(at.context, group_of(at.context, at.group));
  const Way way = way_of(at.context, traced);
  const double lanes = at.context.target.lanes(DType::f32);
  const double rows = static_cast<double>(total(traced.rows)),
               count = static_cast<double>(traced.count);
  Effort effort{.cycles = elementwise_cycles(at.work, at.table)};
  if (way.lane_row) {
    // Partial sums lie in scratch: each addition waits for the one before it.
    effort.cycles += rows * count / lanes * static_cast<double>(traced.reductions.size()) * 6 *
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
  return {effort, {.cycles = blocks * rows * at.table.strided, .serial = blocks * rows < 16384}};
}

}  // namespace

const Archetype& reduce_archetype() {
  static const Archetype row{
      .name = "reduce",
      .ops = {&ops::def<op::Sum>(), &ops::def<op::Amax>(), &ops::def<op::Amin>()},
      .reads = reads_of_operand,
      .can_join = can_join_reduce,
      .shares_kernel = true,
      .makes_in_one_pass = makes_in_one_pass,
      .reduction_order = order_of_sum,
      .work = work_of_reduce,
      .efforts = efforts_of_reduce,
      .build = build_group,
  };
  return row;
}

}  // namespace pantala::schedule::cpu
