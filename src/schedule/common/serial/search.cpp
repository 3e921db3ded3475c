// Searches: where the largest or smallest element of each line lies. Lanes run along a kept axis
// or, where memory is contiguous along a long line, along the line itself; the result is the same:
// the first element that no other beats, where NaN beats every number.
#include <fmt/format.h>

#include <algorithm>

#include "ops/face.h"
#include "ops/reduce.h"
#include "schedule/building.h"
#include "schedule/common/serial/parts.h"
#include "schedule/common/serial/serial.h"

namespace pantala::schedule {

using kir::Op;
using kir::Var;

namespace {

// Vectors of a line from which on lanes along it are worth the comparison of lanes at its end, if
// there could be lanes along another axis.
constexpr std::int64_t kLongLine = 8;

struct Best {
  Var value, position;
};

class Searcher {
 public:
  Searcher(kir::Builder& b, Emitter& emitter, const Context& context, std::uint32_t node, Var size)
      : b_(b),
        emitter_(emitter),
        operand_(context.node(node).inputs[0]),
        axis_(static_cast<std::size_t>(ir::attributes<op::ArgAttrs>(context.node(node)).axis)),
        largest_(ops::is<op::Argmax>(context.node(node))),
        size_(size),
        at_(loop_indices(context.type(operand_).shape.rank())) {}

  // The positions of a vector of lines.
  Var across_lines(const Site& line) {
    Best best = first(line, line.lanes);
    best = walk(line, b_.i64(1), size_, 1, best);
    return best.position;
  }

  // The position of one line, with lanes along it.
  Var along_line(const Site& line, int lanes) {
    // Every lane starts with the first element: it holds a candidate, wherever the line ends.
    Best best = first(line, lanes);
    Site site = line;
    site.lane_loop = LoopId(axis_);
    site.lanes = lanes;
    const Var full = size_ / lanes * lanes;
    best = walk(site, b_.i64(0), full, lanes, best);
    const std::vector<Var> rest = b_.branch(
        lt(full, size_),
        [&] {
          Site last = site;
          last.mask = lt(b_.iota({DType::i64, lanes}), b_.splat(size_ - full, lanes));
          const Best found = step(last, full, best);
          return std::vector{found.value, found.position};
        },
        [&] { return std::vector{best.value, best.position}; });
    return best_of_lanes({rest[0], rest[1]}).position;
  }

 private:
  Var element(Site site, Var r, int lanes) {
    site.loops[axis_] = r;
    emitter_.enter(site);
    const Var x = emitter_.value(operand_, at_);
    return x.lanes() < lanes ? b_.splat(x, lanes) : x;
  }

  Best first(const Site& line, int lanes) {
    const Var x = element(line, b_.i64(0), lanes);
    return {x, b_.constant({DType::i64, lanes}, std::int64_t{0})};
  }

  Best walk(const Site& site, Var begin, Var end, int lanes_of_line, const Best& from) {
    const std::vector<Var> found =
        b_.loop(begin, end, b_.i64(lanes_of_line), {from.value, from.position},
                [&](Var r, std::span<const Var> now) {
                  const Best next = step(site, r, {now[0], now[1]});
                  return std::vector{next.value, next.position};
                });
    return {found[0], found[1]};
  }

  Best step(const Site& site, Var r, const Best& now) {
    const Var x = element(site, r, site.lanes);
    Var position = b_.splat(r, site.lanes);
    if (site.lane_loop == LoopId(axis_)) position = position + b_.iota({DType::i64, site.lanes});
    Var better = beats(x, now.value);
    if (site.mask.valid()) better = b_.binary(Op::bit_and, better, site.mask);
    return {b_.select(better, x, now.value), b_.select(better, position, now.position)};
  }

  Var beats(Var x, Var other) {
    const Var further = largest_ ? lt(other, x) : lt(x, other);
    if (!is_float(x.dtype())) return further;
    return b_.binary(Op::bit_and, b_.binary(Op::bit_or, further, ne(x, x)), eq(other, other));
  }

  // Of lanes that hold equals, the one with the smallest position.
  Best best_of_lanes(const Best& lanes) {
    Best best{b_.extract(lanes.value, 0), b_.extract(lanes.position, 0)};
    for (int k = 1; k < lanes.value.lanes(); ++k) {
      const Var x = b_.extract(lanes.value, k), position = b_.extract(lanes.position, k);
      const Var worse = beats(best.value, x);
      const Var earlier = b_.select(worse, like(worse, 0), lt(position, best.position));
      const Var better = b_.binary(Op::bit_or, beats(x, best.value), earlier);
      best = {b_.select(better, x, best.value), b_.select(better, position, best.position)};
    }
    return best;
  }

  kir::Builder& b_;
  Emitter& emitter_;
  ValueId operand_;
  std::size_t axis_;
  bool largest_;
  Var size_;
  Indices at_;
};

bool reads_in_steps_of_1(const Footprint& footprint, LoopId dim) {
  return std::any_of(footprint.accesses.begin(), footprint.accesses.end(),
                     [&](const Access& a) { return a.flat.coef[dim.index()] == 1; });
}

KernelDraft build_search(Building& building, std::uint32_t node,
                         const std::vector<GroupOutput>& outputs) {
  const Context& context = building.context();
  const ir::Node& n = context.node(node);
  const auto attrs = ir::attributes<op::ArgAttrs>(n);
  const auto axis = static_cast<int>(attrs.axis);
  const Shape& shape = context.type(n.inputs[0]).shape;
  const Domain domain{shape.vec()};
  const Footprint reads = trace(context.info(), domain, {n.inputs[0]}, loop_indices(shape.rank()));
  Indices at = loop_indices(shape.rank());
  if (attrs.keepdims)
    at[static_cast<std::size_t>(axis)] = Index::of(0);
  else
    at.erase(at.begin() + axis);
  const std::vector<Affine> writes = writes_of(context, domain, outputs, at);
  std::vector<Affine> walks = walks_of(reads);
  walks.insert(walks.end(), writes.begin(), writes.end());
  const std::vector<Loop> kept = collapse(domain, other_dims(domain, {axis}), walks, reads.counted);

  // Lanes follow memory.
  const int lanes = context.target.lanes(DType::f32);
  Lines lines = lanes_along(context, kept, walks_of(reads));
  const bool lines_are_neighbours = lines.along && reads_in_steps_of_1(reads, lines.along->dim);
  const bool along_line = reads_in_steps_of_1(reads, LoopId(static_cast<std::size_t>(axis))) &&
                          !lines_are_neighbours &&
                          shape[axis] >= lanes * (lines.along ? kLongLine : 1);
  if (along_line) lines = take_along(kept, std::nullopt, 1);

  Arguments arguments = building.arguments();
  announce_reads(context, reads, arguments);
  for (const GroupOutput& o : outputs) arguments.will_write(o.buffer, DType::i64);
  kir::Builder b("search", line_threads(context.target));
  arguments.declare_buffers(b);
  const double line_cost = (reads.cost + 4) * static_cast<double>(shape[axis]) + 16;
  const LineItems items(b, lines, line_cost, arguments);
  const Var size = arguments.integer(b, "size", shape[axis]);
  std::vector<DeclaredAccess> places;
  for (std::size_t k = 0; k < outputs.size(); ++k)
    places.push_back(arguments.access(b, outputs[k].buffer, writes[k]));
  Emitter emitter = make_emitter(b, context, domain, reads, arguments);
  Searcher searcher(b, emitter, context, node, size);
  items.run([&](const Site& line) {
    const Var position =
        along_line ? searcher.along_line(line, lanes) : searcher.across_lines(line);
    for (const DeclaredAccess& place : places) store_output(b, place, line, position);
  });
  return finish_draft(fmt::format("search.{}", n.op->name), b, arguments,
                      domain.empty() ? 0 : items.items(),
                      line_cost * static_cast<double>(total(kept)));
}

}  // namespace

const Archetype& search_archetype() {
  static const Archetype row =
      walking_row<build_search>("search", {&ops::def<op::Argmax>(), &ops::def<op::Argmin>()});
  return row;
}

}  // namespace pantala::schedule
