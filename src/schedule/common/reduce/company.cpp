#include "schedule/common/reduce/company.h"

#include <algorithm>

#include "schedule/common/reduce/traced.h"

namespace pantala::schedule {

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

// Several passes over few long rows would leave workers idle.
bool are_few_long_rows(const ReduceGroup& group) {
  const std::int64_t rows = group.full.numel() / std::max<std::int64_t>(reduced_elements(group), 1);
  return rows < 8 && group.full.numel() > 16384;
}

}  // namespace

bool can_join_reduction(const Company& company, const ReduceLimits& limits) {
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
  // Tensors may come to lie otherwise than row by row, but not so that it pays. Nor does it where
  // rows lie across memory.
  if (!limits.is_one_loop) return true;
  const TracedReduce traced = trace_group(context, group);
  return traced.elements.empty() ||
         (traced.elements.size() == 1 && reads_along(traced, traced.elements[0]));
}

ReduceGroup reduction_of(const Context& context, const Group& group) {
  ReduceGroup reduce = reduce_group(context, group.anchors[0]);
  reduce.reductions.clear();
  for (const std::uint32_t node : group.anchors) reduce.reductions.push_back({node, 0});
  reduce.outputs = group.outputs;
  return reduce;
}

bool reduces_in_one_pass(const Context& context, const Group& group, ValueId value) {
  const Shape& full = context.type(context.node(group.anchors[0]).inputs[0]).shape;
  return context.type(value).shape.numel() < full.numel();
}

}  // namespace pantala::schedule
