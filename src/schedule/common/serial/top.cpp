// The best elements of each line, one after the other: every pass over the line finds the best of
// those that come behind the one before, so that nothing but the last pick is kept. Lanes run along
// a kept axis or, where memory is contiguous along a line, along the line itself.
#include <fmt/format.h>

#include <algorithm>

#include "ops/face.h"
#include "ops/topk.h"
#include "schedule/building.h"
#include "schedule/common/serial/parts.h"
#include "schedule/common/serial/serial.h"

namespace pantala::schedule {

using kir::Op;
using kir::Var;

namespace {

// An element of a line; below position 0 there is none.
struct Pick {
  Var value, position;
};

class Picker {
 public:
  Picker(kir::Builder& b, Emitter& emitter, const Context& context, std::uint32_t node, Var size)
      : b_(b),
        emitter_(emitter),
        operand_(context.node(node).inputs[0]),
        type_(kir::register_dtype(context.type(operand_).dtype)),
        size_(size),
        at_(loop_indices(context.type(operand_).shape.rank())) {
    const auto attrs = ir::attributes<op::TopIndices>(context.node(node));
    axis_ = static_cast<std::size_t>(attrs.axis);
    largest_ = attrs.largest;
  }

  Pick none(int lanes) {
    return {is_float(type_) ? b_.constant({type_, lanes}, 0.0)
                            : b_.constant({type_, lanes}, std::int64_t{0}),
            b_.constant({DType::i64, lanes}, std::int64_t{-1})};
  }

  // The best behind `last`, of a vector of lines.
  Pick across_lines(const Site& line, const Pick& last) {
    return walk(line, b_.i64(0), size_, 1, last, none(line.lanes));
  }

  // Of one line, with lanes along it.
  Pick along_line(const Site& line, int lanes, const Pick& last) {
    Site site = line;
    site.lane_loop = LoopId(axis_);
    site.lanes = lanes;
    const Pick wide{b_.splat(last.value, lanes), b_.splat(last.position, lanes)};
    const Var full = size_ / lanes * lanes;
    const Pick most = walk(site, b_.i64(0), full, lanes, wide, none(lanes));
    const std::vector<Var> all = b_.branch(
        lt(full, size_),
        [&] {
          Site rest = site;
          rest.mask = lt(b_.iota({DType::i64, lanes}), b_.splat(size_ - full, lanes));
          const Pick found = step(rest, full, wide, most);
          return std::vector{found.value, found.position};
        },
        [&] { return std::vector{most.value, most.position}; });
    Pick best{b_.extract(all[0], 0), b_.extract(all[1], 0)};
    for (int k = 1; k < lanes; ++k) {
      const Pick other{b_.extract(all[0], k), b_.extract(all[1], k)};
      best = chosen(improves(other, best), other, best);
    }
    return best;
  }

 private:
  Var both(Var a, Var b) { return b_.binary(Op::bit_and, a, b); }
  Var either(Var a, Var b) { return b_.binary(Op::bit_or, a, b); }
  Var is_none(const Pick& pick) { return lt(pick.position, 0); }
  Pick chosen(Var condition, const Pick& a, const Pick& b) {
    return {b_.select(condition, a.value, b.value), b_.select(condition, a.position, b.position)};
  }

  // NaN is larger than every number.
  Var beats(Var a, Var b) {
    const Var large = largest_ ? a : b, small = largest_ ? b : a;
    const Var further = lt(small, large);
    if (!is_float(type_)) return further;
    return either(further, both(ne(large, large), eq(small, small)));
  }
  Var stands_before(const Pick& a, const Pick& b) {
    const Var worse = beats(b.value, a.value), earlier = lt(a.position, b.position);
    return either(beats(a.value, b.value), both(eq(worse, like(worse, 0)), earlier));
  }
  // Whether a, which may be none, is to take the place of the best so far.
  Var improves(const Pick& a, const Pick& best) {
    const Var exists = le(like(a.position, 0), a.position);
    return both(exists, either(is_none(best), stands_before(a, best)));
  }

  Pick walk(const Site& site, Var begin, Var end, int elements, const Pick& last,
            const Pick& start) {
    const std::vector<Var> found =
        b_.loop(begin, end, b_.i64(elements), {start.value, start.position},
                [&](Var r, std::span<const Var> now) {
                  const Pick next = step(site, r, last, {now[0], now[1]});
                  return std::vector{next.value, next.position};
                });
    return {found[0], found[1]};
  }

  Pick step(Site site, Var r, const Pick& last, const Pick& best) {
    site.loops[axis_] = r;
    emitter_.enter(site);
    Pick here{emitter_.value(operand_, at_), b_.splat(r, site.lanes)};
    if (here.value.lanes() < site.lanes) here.value = b_.splat(here.value, site.lanes);
    if (site.lane_loop == LoopId(axis_))
      here.position = here.position + b_.iota({DType::i64, site.lanes});
    Var better = both(either(is_none(last), stands_before(last, here)), improves(here, best));
    if (site.mask.valid()) better = both(better, site.mask);
    return chosen(better, here, best);
  }

  kir::Builder& b_;
  Emitter& emitter_;
  ValueId operand_;
  DType type_;
  std::size_t axis_ = 0;
  bool largest_ = true;
  Var size_;
  Indices at_;
};

KernelDraft build_top(Building& building, std::uint32_t node,
                      const std::vector<GroupOutput>& outputs) {
  const Context& context = building.context();
  const ir::Node& n = context.node(node);
  const auto attrs = ir::attributes<op::TopIndices>(n);
  const auto axis = static_cast<int>(attrs.axis);
  const Shape& shape = context.type(n.inputs[0]).shape;
  const Domain domain{shape.vec()};
  // Along the axis, reads count elements and writes count picks; there are no more of these.
  const Indices at = loop_indices(shape.rank());
  const Footprint reads = trace(context.info(), domain, {n.inputs[0]}, at);
  const std::vector<Affine> writes = writes_of(context, domain, outputs, at);
  std::vector<Affine> walks = walks_of(reads);
  walks.insert(walks.end(), writes.begin(), writes.end());
  const std::vector<Loop> kept = collapse(domain, other_dims(domain, {axis}), walks, reads.counted);

  const int lanes = context.target.lanes(DType::f32);
  Lines lines = lanes_along(context, kept, walks_of(reads));
  const bool along_line = !lines.along && shape[axis] >= lanes;
  Arguments arguments = building.arguments();
  announce_reads(context, reads, arguments);
  for (const GroupOutput& o : outputs) arguments.will_write(o.buffer, DType::i64);
  kir::Builder b("top", line_threads(context.target));
  arguments.declare_buffers(b);
  const double line_cost =
      (reads.cost + 8) * static_cast<double>(shape[axis]) * static_cast<double>(attrs.k) + 16;
  const LineItems items(b, lines, line_cost, arguments);
  const Var size = arguments.integer(b, "size", shape[axis]),
            picks = arguments.integer(b, "picks", attrs.k);
  std::vector<DeclaredAccess> places;
  for (std::size_t k = 0; k < outputs.size(); ++k)
    places.push_back(arguments.access(b, outputs[k].buffer, writes[k]));
  Emitter emitter = make_emitter(b, context, domain, reads, arguments);
  Picker picker(b, emitter, context, node, size);
  items.run([&](const Site& line) {
    const Pick start = picker.none(line.lanes);
    b.loop(b.i64(0), picks, b.i64(1), {start.value, start.position},
           [&](Var number, std::span<const Var> last) {
             const Pick before{last[0], last[1]};
             const Pick pick = along_line ? picker.along_line(line, lanes, before)
                                          : picker.across_lines(line, before);
             Site to = line;
             to.loops[static_cast<std::size_t>(axis)] = number;
             for (const DeclaredAccess& place : places) store_output(b, place, to, pick.position);
             return std::vector{pick.value, pick.position};
           });
  });
  return finish_draft("search.top_indices", b, arguments,
                      domain.empty() || attrs.k == 0 ? 0 : items.items(),
                      line_cost * static_cast<double>(total(kept)));
}

}  // namespace

const Archetype& top_archetype() {
  static const Archetype row = walking_row<build_top>("top", {&ops::def<op::TopIndices>()});
  return row;
}

}  // namespace pantala::schedule
