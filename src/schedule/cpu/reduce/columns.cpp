// Reductions of many rows at once, with lanes along a kept axis, and the split of long reductions
// over items.
#include <fmt/format.h>

#include <algorithm>

#include "schedule/cpu/reduce/parts.h"

namespace pantala::schedule::cpu {

using kir::Var;

namespace {

std::vector<kir::BufferId> make_partials(kir::Builder& b, const TracedReduce& traced, int lanes) {
  std::vector<kir::BufferId> partials;
  for (std::size_t k = 0; k < traced.reductions.size(); ++k)
    partials.push_back(b.scratch(fmt::format("partials{}", k), traced.reductions[k].dtype,
                                 std::int64_t{lanes} * lanes));
  return partials;
}

}  // namespace

ColumnReducer::ColumnReducer(kir::Builder& b, const Context& context, const TracedReduce& traced,
                             Arguments& arguments)
    : b_(b),
      traced_(traced),
      lanes_(context.target.lanes(DType::f32)),
      partials_(make_partials(b, traced, lanes_)),
      count_(arguments.integer(b, "count", traced.count)),
      emitter_(make_emitter(b, context, traced.domain, traced.footprint, arguments)) {
  for (std::size_t k = 1; k < traced.elements.size(); ++k)
    extents_.push_back(arguments.integer(b, "extent", traced.elements[k].extent));
}

std::vector<Var> ColumnReducer::reduce_range(const Site& lanes, Var begin, Var end) {
  const Var width = b_.i64(lanes_);
  b_.loop(b_.i64(0), width, b_.i64(1), [&](Var p) {
    for (std::size_t k = 0; k < partials_.size(); ++k)
      b_.store(partials_[k], p * lanes_, start_of(b_, traced_.reductions[k], lanes_));
  });
  b_.loop(begin, end, b_.i64(1), [&](Var r) {
    Site site = lanes;
    place(b_, site, r, traced_.elements, extents_);
    emitter_.enter(site);
    const Var p = (r % lanes_) * lanes_;
    for (std::size_t k = 0; k < partials_.size(); ++k) {
      const Reduction& reduction = traced_.reductions[k];
      const Var x = emitter_.value(reduction.operand, traced_.reduced);
      b_.store(partials_[k], p, combine(b_, reduction, b_.load(partials_[k], p, lanes_), x));
    }
  });
  std::vector<Var> results;
  for (std::size_t k = 0; k < partials_.size(); ++k) {
    std::vector<Var> all;
    for (int p = 0; p < lanes_; ++p)
      all.push_back(b_.load(partials_[k], b_.i64(std::int64_t{p} * lanes_), lanes_));
    for (std::size_t half = all.size() / 2; half > 0; half /= 2)
      for (std::size_t p = 0; p < half; ++p)
        all[p] = combine(b_, traced_.reductions[k], all[p], all[p + half]);
    results.push_back(all[0]);
  }
  return results;
}

std::vector<Var> ColumnReducer::reduce_rows(const Site& lanes) {
  if (traced_.count <= kSumBlock) return reduce_range(lanes, b_.i64(0), count_);
  std::vector<Var> totals;
  for (const Reduction& r : traced_.reductions) totals.push_back(start_of(b_, r, lanes_));
  return b_.loop(
      b_.i64(0), count_, b_.i64(kSumBlock), totals, [&](Var begin, std::span<const Var> sums) {
        std::vector<Var> next = reduce_range(lanes, begin, min(begin + kSumBlock, count_));
        for (std::size_t k = 0; k < next.size(); ++k)
          next[k] = combine(b_, traced_.reductions[k], sums[k], next[k]);
        return next;
      });
}

namespace {

// Rows as a kernel walks them with lanes: (outer rows) x (vectors along one kept loop).
struct LaneRows {
  std::vector<Loop> outer;
  Loop along;
  std::vector<Var> extents;
  Var length, vectors;
  int lanes = 1;

  LaneRows(kir::Builder& b, const Context& context, const TracedReduce& traced,
           std::size_t lane_row, Arguments& arguments)
      : outer(traced.rows), along(traced.rows[lane_row]) {
    outer.erase(outer.begin() + static_cast<std::ptrdiff_t>(lane_row));
    lanes = context.target.lanes(DType::f32);
    length = arguments.integer(b, "length", along.extent);
    vectors = (length + (lanes - 1)) / lanes;
    for (std::size_t k = 1; k < outer.size(); ++k)
      extents.push_back(arguments.integer(b, "extent", outer[k].extent));
  }
  std::int64_t count() const { return total(outer) * ((along.extent + lanes - 1) / lanes); }
  // The site of one vector of rows; always masked: the last vector of a row may be short.
  Site site(kir::Builder& b, Var number) const {
    Site at;
    const Var row = number / vectors, begin = (number - row * vectors) * lanes;
    place(b, at, row, outer, extents);
    at.loops[along.dim.index()] = begin;
    at.lane_loop = along.dim;
    at.lanes = lanes;
    at.mask = lt(b.iota({DType::i64, lanes}), b.splat(length - begin, lanes));
    return at;
  }
};

double element_cost(const TracedReduce& traced) { return traced.footprint.cost + 4; }

}  // namespace

KernelDraft build_columns(Building& building, const TracedReduce& traced, std::size_t lane_row) {
  const Context& context = building.context();
  Arguments arguments = building.arguments();
  announce_reads(context, traced.footprint, arguments);
  for (const ReduceOutput& o : traced.outputs)
    arguments.will_write(o.to.buffer, context.type(o.to.value).dtype);
  kir::Builder b("columns");
  arguments.declare_buffers(b);
  std::vector<DeclaredAccess> writes;
  for (const ReduceOutput& o : traced.outputs)
    writes.push_back(arguments.access(b, o.to.buffer, o.write));
  const LaneRows rows(b, context, traced, lane_row, arguments);
  ColumnReducer reducer(b, context, traced, arguments);
  const Site site = rows.site(b, b.item());
  const std::vector<Var> results = reducer.reduce_rows(site);
  for (std::size_t k = 0; k < results.size(); ++k)
    provide_result(reducer.emitter(), traced.reductions[k], results[k]);
  reducer.emitter().enter(site);
  std::vector<Var> values;
  for (const ReduceOutput& o : traced.outputs)
    values.push_back(reducer.emitter().value(o.to.value, o.at));
  for (std::size_t k = 0; k < values.size(); ++k) store_output(b, writes[k], site, values[k]);

  KernelDraft draft;
  draft.name = fmt::format("columns.{}", context.node(traced.reductions[0].value.node).op->name);
  draft.kernel = b.finish();
  draft.set.items = traced.domain.empty() && total(traced.rows) == 0 ? 0 : rows.count();
  draft.set.buffers = arguments.buffers();
  draft.set.params = arguments.params();
  draft.flops = element_cost(traced) * static_cast<double>(traced.count * total(traced.rows));
  draft.serial = draft.flops < 65536 || draft.set.items == 1;
  return draft;
}

namespace {

// First kernel of a split reduction: an item is one block of one row (or of one vector of rows).
KernelDraft build_blocks(Building& building, const TracedReduce& traced,
                         std::optional<std::size_t> lane_row,
                         const std::vector<std::uint32_t>& partials) {
  const Context& context = building.context();
  Arguments arguments = building.arguments();
  announce_reads(context, traced.footprint, arguments);
  for (std::size_t k = 0; k < partials.size(); ++k)
    arguments.will_write(partials[k], context.buffer(partials[k]).dtype);
  kir::Builder b("blocks");
  arguments.declare_buffers(b);
  const std::int64_t blocks = (traced.count + kSumBlock - 1) / kSumBlock,
                     row_count = total(traced.rows);
  const Var block_count = arguments.integer(b, "blocks", blocks),
            rows = arguments.integer(b, "rows", row_count),
            count = arguments.integer(b, "elements", traced.count);
  const Var group = b.item() / block_count, block = b.item() - group * block_count;
  const Var begin = block * kSumBlock, end = min(begin + kSumBlock, count);
  KernelDraft draft;
  if (!lane_row) {
    std::vector<Var> extents;
    for (std::size_t k = 1; k < traced.rows.size(); ++k)
      extents.push_back(arguments.integer(b, "extent", traced.rows[k].extent));
    RowReducer reducer(b, context, traced, arguments);
    Site site;
    place(b, site, group, traced.rows, extents);
    const std::vector<Var> results = reducer.reduce_range(site, begin, end, 1);
    for (std::size_t k = 0; k < results.size(); ++k)
      b.store(arguments.id(partials[k]), block * rows + group, results[k]);
    draft.set.items = row_count * blocks;
  } else {
    const LaneRows lane_rows(b, context, traced, *lane_row, arguments);
    ColumnReducer reducer(b, context, traced, arguments);
    const Site site = lane_rows.site(b, group);
    const std::vector<Var> results = reducer.reduce_range(site, begin, end);
    // Rows are numbered with the lanes' loop last.
    const Var outer = group / lane_rows.vectors;
    const Var at = block * rows + outer * lane_rows.length + site.loops[site.lane_loop.index()];
    for (std::size_t k = 0; k < results.size(); ++k)
      b.store(arguments.id(partials[k]), at, results[k], site.mask);
    draft.set.items = lane_rows.count() * blocks;
  }
  draft.name = fmt::format("blocks.{}", context.node(traced.reductions[0].value.node).op->name);
  draft.kernel = b.finish();
  draft.set.buffers = arguments.buffers();
  draft.set.params = arguments.params();
  draft.flops = traced.flops();
  return draft;
}

// Second kernel: adds up the blocks of each row and makes the outputs.
KernelDraft build_combine(Building& building, const TracedReduce& traced,
                          std::optional<std::size_t> lane_row,
                          const std::vector<std::uint32_t>& partials) {
  const Context& context = building.context();
  Arguments arguments = building.arguments();
  announce_reads(context, traced.made_of_rows, arguments);
  for (const std::uint32_t id : partials) arguments.will_read(id, context.buffer(id).dtype);
  for (const ReduceOutput& o : traced.outputs)
    arguments.will_write(o.to.buffer, context.type(o.to.value).dtype);
  kir::Builder b("combine");
  arguments.declare_buffers(b);
  std::vector<DeclaredAccess> writes;
  for (const ReduceOutput& o : traced.outputs)
    writes.push_back(arguments.access(b, o.to.buffer, o.write));
  const std::int64_t row_count = total(traced.rows);
  const Var blocks = arguments.integer(b, "blocks", (traced.count + kSumBlock - 1) / kSumBlock),
            rows = arguments.integer(b, "rows", row_count);
  std::vector<Loop> order = traced.rows;
  if (lane_row) {
    const auto lane = order.begin() + static_cast<std::ptrdiff_t>(*lane_row);
    std::rotate(lane, lane + 1, order.end());
  }
  std::vector<Var> extents;
  for (std::size_t k = 1; k < order.size(); ++k)
    extents.push_back(arguments.integer(b, "extent", order[k].extent));
  Emitter emitter = make_emitter(b, context, traced.domain, traced.made_of_rows, arguments);
  b.loop(b.i64(0), rows, b.i64(1), [&](Var row) {
    std::vector<Var> totals;
    for (const Reduction& r : traced.reductions) totals.push_back(nothing(b, r));
    totals = b.loop(b.i64(0), blocks, b.i64(1), totals, [&](Var block, std::span<const Var> sums) {
      std::vector<Var> next;
      for (std::size_t k = 0; k < sums.size(); ++k)
        next.push_back(combine(b, traced.reductions[k], sums[k],
                               b.load(arguments.id(partials[k]), block * rows + row)));
      return next;
    });
    Site site;
    place(b, site, row, order, extents);
    emitter.forget_provided();
    for (std::size_t k = 0; k < totals.size(); ++k)
      provide_result(emitter, traced.reductions[k], totals[k]);
    emitter.enter(site);
    std::vector<Var> values;
    for (const ReduceOutput& o : traced.outputs) values.push_back(emitter.value(o.to.value, o.at));
    for (std::size_t k = 0; k < values.size(); ++k) store_output(b, writes[k], site, values[k]);
  });
  KernelDraft draft;
  draft.name = fmt::format("combine.{}", context.node(traced.reductions[0].value.node).op->name);
  draft.kernel = b.finish();
  draft.set.items = 1;
  draft.set.buffers = arguments.buffers();
  draft.set.params = arguments.params();
  draft.serial = true;
  return draft;
}

}  // namespace

std::vector<KernelDraft> build_split(Building& building, const TracedReduce& traced,
                                     std::optional<std::size_t> lane_row) {
  const std::int64_t blocks = (traced.count + kSumBlock - 1) / kSumBlock;
  std::vector<std::uint32_t> partials;
  for (const Reduction& r : traced.reductions)
    partials.push_back(building.add_scratch_tensor(fmt::format("partial.{}", r.value.node), r.dtype,
                                                   {blocks, total(traced.rows)}));
  return {build_blocks(building, traced, lane_row, partials),
          build_combine(building, traced, lane_row, partials)};
}

}  // namespace pantala::schedule::cpu
