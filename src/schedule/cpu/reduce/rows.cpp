// Reductions row by row, with lanes along the reduced elements: a pass for each level of reductions
// that wait for others, and a last one for what is made of all of them.
#include <fmt/format.h>

#include <algorithm>

#include "schedule/cpu/reduce/parts.h"

namespace pantala::schedule::cpu {

using kir::Var;

RowReducer::RowReducer(kir::Builder& b, const Context& context, const TracedReduce& traced,
                       Arguments& arguments)
    : b_(b),
      traced_(traced),
      lanes_(context.target.lanes(DType::f32)),
      count_(arguments.integer(b, "count", traced.count)),
      emitter_(make_emitter(b, context, traced.domain, traced.footprint, arguments)) {
  for (std::size_t k = 1; k < traced.elements.size(); ++k)
    extents_.push_back(arguments.integer(b, "extent", traced.elements[k].extent));
  for (std::size_t k = 1; k < traced.made.size(); ++k)
    made_extents_.push_back(arguments.integer(b, "extent", traced.made[k].extent));
}

// From begin to end of one loop, in vectors and then the rest under a mask.
std::vector<Var> RowReducer::along(LoopId dim, Site site, Var begin, Var end,
                                   std::vector<Var> carried, const Pass& body) {
  site.lane_loop = dim;
  site.lanes = lanes_;
  emitter_.hoist_addresses(site);
  const Var full = begin + (end - begin) / lanes_ * lanes_;
  carried = b_.loop(begin, full, b_.i64(lanes_), carried, [&](Var r, std::span<const Var> now) {
    site.loops[dim.index()] = r;
    return body(site, r, {now.begin(), now.end()});
  });
  return b_.branch(
      lt(full, end),
      [&] {
        Site rest = site;
        rest.loops[dim.index()] = full;
        rest.mask = lt(b_.iota({DType::i64, lanes_}), b_.splat(end - full, lanes_));
        return body(rest, full, carried);
      },
      [&] { return carried; });
}

// Elements [begin, end) of a row. `body` gets the site and the carried values.
std::vector<Var> RowReducer::over(const Site& row, Var begin, Var end, std::vector<Var> carried,
                                  const Pass& body) {
  const std::vector<Loop>& loops = traced_.elements;
  if (loops.empty()) return body(row, b_.i64(0), carried);
  if (loops.size() == 1) return along(loops[0].dim, row, begin, end, carried, body);
  Site site = row;
  if (has_lanes(traced_, lanes_)) {
    site.lane_loop = loops.back().dim;
    site.lanes = lanes_;
  }
  return b_.loop(begin, end, b_.i64(site.lanes), carried, [&](Var r, std::span<const Var> now) {
    place(b_, site, r, loops, extents_);
    return body(site, r, {now.begin(), now.end()});
  });
}

void RowReducer::make(const Site& row, const std::function<void(const Site&)>& body) {
  const Pass pass = [&](const Site& site, Var, std::vector<Var>) -> std::vector<Var> {
    emitter_.enter(site);
    body(site);
    return {};
  };
  const std::vector<Loop>& loops = traced_.made;
  if (loops.empty()) {
    pass(row, {}, {});
  } else if (loops.size() == 1) {
    along(loops[0].dim, row, b_.i64(0), count_, {}, pass);
  } else {
    const std::vector<Loop> outer(loops.begin(), loops.end() - 1);
    const Var inner = made_extents_.back();
    b_.loop(b_.i64(0), count_ / inner, b_.i64(1), [&](Var number) {
      Site site = row;
      place(b_, site, number, outer, made_extents_);
      along(loops.back().dim, site, b_.i64(0), inner, {}, pass);
    });
  }
}

std::vector<Var> RowReducer::reduce_range(const Site& row, Var begin, Var end, int level,
                                          const std::function<void(const Site&)>& beside) {
  std::vector<const Reduction*> now;
  std::vector<Var> partials;
  for (const Reduction& r : traced_.reductions) {
    if (r.level != level) continue;
    now.push_back(&r);
    partials.push_back(start_of(b_, r, traced_.elements.empty() ? 1 : lanes_));
  }
  partials = over(row, begin, end, partials, [&](const Site& site, Var r, std::vector<Var> sums) {
    emitter_.enter(site);
    for (std::size_t k = 0; k < now.size(); ++k) {
      Var x = emitter_.value(now[k]->operand, traced_.reduced);
      if (site.lanes == 1 && !traced_.elements.empty()) {
        // One element at a time: it belongs to lane r mod lanes.
        const Var mine = eq(b_.iota({DType::i64, lanes_}), b_.splat(r % lanes_, lanes_));
        x = b_.select(mine, b_.splat(x, lanes_), b_.splat(nothing(b_, *now[k]), lanes_));
      } else if (site.mask.valid()) {
        x = b_.select(site.mask, x.lanes() == 1 ? b_.splat(x, lanes_) : x,
                      b_.splat(nothing(b_, *now[k]), lanes_));
      }
      sums[k] = combine(b_, *now[k], sums[k], x);
    }
    if (beside) beside(site);
    return sums;
  });
  for (std::size_t k = 0; k < now.size(); ++k) partials[k] = finish(b_, *now[k], partials[k]);
  return partials;
}

std::vector<Var> RowReducer::reduce_row(const Site& row, int level,
                                        const std::function<void(const Site&)>& beside) {
  if (traced_.count <= kSumBlock) return reduce_range(row, b_.i64(0), count_, level, beside);
  std::vector<const Reduction*> now;
  std::vector<Var> totals;
  for (const Reduction& r : traced_.reductions)
    if (r.level == level) now.push_back(&r), totals.push_back(nothing(b_, r));
  return b_.loop(b_.i64(0), count_, b_.i64(kSumBlock), totals,
                 [&](Var begin, std::span<const Var> sums) {
                   std::vector<Var> next =
                       reduce_range(row, begin, min(begin + kSumBlock, count_), level, beside);
                   for (std::size_t k = 0; k < now.size(); ++k)
                     next[k] = combine(b_, *now[k], sums[k], next[k]);
                   return next;
                 });
}

void RowReducer::provide(int level, const std::vector<Var>& results) {
  std::size_t next = 0;
  for (const Reduction& r : traced_.reductions)
    if (r.level == level) provide_result(emitter_, r, results[next++]);
}

KernelDraft build_rows(Building& building, const ReduceGroup& group, const TracedReduce& traced) {
  const Context& context = building.context();
  Arguments arguments = building.arguments();
  announce_reads(context, traced.footprint, arguments);
  for (const ReduceOutput& o : traced.outputs)
    arguments.will_write(o.to.buffer, context.type(o.to.value).dtype);
  kir::Builder b("rows");
  arguments.declare_buffers(b);
  const std::int64_t rows = total(traced.rows);
  const double row_cost = (traced.footprint.cost + 4) * static_cast<double>(traced.count) + 64;
  const auto item_rows = std::clamp<std::int64_t>(static_cast<std::int64_t>(32768 / row_cost), 1,
                                                  std::max<std::int64_t>(rows, 1));
  const Var row_count = arguments.integer(b, "rows", rows),
            step = arguments.integer(b, "item_rows", item_rows);
  std::vector<Var> extents;
  for (std::size_t k = 1; k < traced.rows.size(); ++k)
    extents.push_back(arguments.integer(b, "extent", traced.rows[k].extent));
  std::vector<DeclaredAccess> writes;
  for (const ReduceOutput& o : traced.outputs)
    writes.push_back(arguments.access(b, o.to.buffer, o.write));
  RowReducer reducer(b, context, traced, arguments);

  // Outputs of the full shape are stored in the first pass that knows all that they need.
  const auto store_full = [&](const Site& site, int level) {
    std::vector<std::pair<std::size_t, Var>> values;
    for (std::size_t k = 0; k < traced.outputs.size(); ++k)
      if (!traced.outputs[k].per_row && traced.outputs[k].level == level)
        values.emplace_back(
            k, reducer.emitter().value(traced.outputs[k].to.value, traced.outputs[k].at));
    for (const auto& [k, value] : values) store_output(b, writes[k], site, value);
  };
  const Var first = b.item() * step;
  b.loop(first, min(first + step, row_count), b.i64(1), [&](Var row) {
    Site site;
    place(b, site, row, traced.rows, extents);
    reducer.emitter().forget_provided();
    for (int level = 1; level <= traced.levels; ++level) {
      const auto beside = [&](const Site& at) { store_full(at, level - 1); };
      reducer.provide(level, reducer.reduce_row(site, level, beside));
    }
    const bool last_pass =
        std::any_of(traced.outputs.begin(), traced.outputs.end(),
                    [&](const ReduceOutput& o) { return !o.per_row && o.level == traced.levels; });
    if (last_pass) reducer.make(site, [&](const Site& at) { store_full(at, traced.levels); });
    reducer.emitter().enter(site);
    // All are computed before any is stored: a kernel may overwrite what it reads.
    std::vector<std::pair<std::size_t, Var>> values;
    for (std::size_t k = 0; k < traced.outputs.size(); ++k)
      if (traced.outputs[k].per_row)
        values.emplace_back(
            k, reducer.emitter().value(traced.outputs[k].to.value, traced.outputs[k].at));
    for (const auto& [k, value] : values) store_output(b, writes[k], site, value);
  });
  KernelDraft draft;
  draft.name = fmt::format("rows.{}", context.node(group.reductions.back().node).op->name);
  draft.kernel = b.finish();
  draft.set.items = (rows + item_rows - 1) / item_rows;
  draft.set.buffers = arguments.buffers();
  draft.set.params = arguments.params();
  draft.flops = row_cost * static_cast<double>(rows);
  draft.serial = draft.flops < 16384 || draft.set.items == 1;
  return draft;
}

}  // namespace pantala::schedule::cpu
