// Reductions of many rows at once, with lanes along a kept axis, and the split of long reductions
// over items.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "schedule/cpu/reduce/parts.h"

namespace pantala::schedule::cpu {

using kir::Var;

namespace {

// Rows as a kernel walks them with lanes: (outer rows) x (vectors along one kept loop), of which an
// item has several neighbours: whole lines of memory, and fewer jumps between them.
struct LaneRows {
  std::vector<Loop> outer;
  Loop along;
  std::vector<Var> extents;
  Var length, vectors, groups;
  int lanes = 1;
  int width = 1;  // vectors of an item

  // A multiple of `blocks` items will share the work.
  LaneRows(kir::Builder& b, const Context& context, const TracedReduce& traced,
           std::size_t lane_row, Arguments& arguments, std::int64_t blocks = 1)
      : outer(traced.rows), along(traced.rows[lane_row]) {
    outer.erase(outer.begin() + static_cast<std::ptrdiff_t>(lane_row));
    lanes = context.target.lanes(DType::f32);
    const std::int64_t partials = std::ssize(traced.reductions) * lanes * lanes * 4;
    width = choose_width(total(outer) * blocks, context.options.workers,
                         std::max<std::int64_t>(context.target.l1_bytes / 2 / partials, 1));
    length = arguments.integer(b, "length", along.extent);
    vectors = (length + (lanes - 1)) / lanes;
    groups = (vectors + (width - 1)) / width;
    for (std::size_t k = 1; k < outer.size(); ++k)
      extents.push_back(arguments.integer(b, "extent", outer[k].extent));
  }
  std::int64_t count() const { return total(outer) * group_count(width); }

  // The vectors of an item: where the first one begins, and how many there are.
  struct Span {
    Site site;
    Var row, begin, count;
  };
  Span span(kir::Builder& b, Var number) const {
    Span at;
    at.row = number / groups;
    const Var first = (number - at.row * groups) * width;
    at.begin = first * lanes;
    at.count = min(vectors - first, width);
    place(b, at.site, at.row, outer, extents);
    at.site.loops[along.dim.index()] = at.begin;
    at.site.lane_loop = along.dim;
    at.site.lanes = lanes;
    return at;
  }
  // Every vector of a span in turn; a last one that is short has a mask.
  void each(kir::Builder& b, const Site& site, const Span& span,
            const std::function<void(const Site&, Var)>& body) const {
    const auto vector = [&](Var number) {
      Site at = site;
      const Var begin = span.begin + number * lanes;
      at.loops[along.dim.index()] = begin;
      if (along.extent % lanes != 0)
        at.mask = lt(b.iota({DType::i64, lanes}), b.splat(length - begin, lanes));
      body(at, number);
    };
    if (width == 1) return vector(b.i64(0));
    b.loop(b.i64(0), span.count, b.i64(1), vector);
  }

 private:
  std::int64_t vector_count() const { return (along.extent + lanes - 1) / lanes; }
  std::int64_t group_count(std::int64_t of) const { return (vector_count() + of - 1) / of; }
  // What the slowest worker has to do: to come to a line takes about as long as one vector or two.
  int choose_width(std::int64_t others, int workers, std::int64_t most) const {
    constexpr int kMost = 8;
    constexpr double kJump = 1.5;
    int best = 1;
    double least = INFINITY;
    for (int of = 1; of <= std::min<std::int64_t>(kMost, most); ++of) {
      const std::int64_t items = group_count(of) * others;
      const double time = static_cast<double>((items + workers - 1) / workers) * (kJump + of);
      if (time < least) least = time, best = of;
    }
    return best;
  }
};

// Reduces the rows of a span at once; the partial sums lie in scratch.
class ColumnReducer {
 public:
  // Scratch comes after the buffers.
  ColumnReducer(kir::Builder& b, const Context& context, const TracedReduce& traced,
                const LaneRows& rows, Arguments& arguments)
      : b_(b),
        traced_(traced),
        rows_(rows),
        lanes_(rows.lanes),
        partials_(make_scratch("partials", lanes_)),
        totals_(traced.count > kSumBlock ? make_scratch("totals", 1)
                                         : std::vector<kir::BufferId>{}),
        count_(arguments.integer(b, "count", traced.count)),
        emitter_(make_emitter(b, context, traced.domain, traced.footprint, arguments)) {
    for (std::size_t k = 1; k < traced.elements.size(); ++k)
      extents_.push_back(arguments.integer(b, "extent", traced.elements[k].extent));
  }
  Emitter& emitter() { return emitter_; }

  using Finish = std::function<void(const Site&, const std::vector<Var>&)>;
  // The results over the elements [begin, end) of one block, vector by vector.
  void reduce_range(const LaneRows::Span& span, Var begin, Var end, const Finish& finish) {
    clear(partials_, span.count * (lanes_ * lanes_));
    b_.loop(begin, end, b_.i64(1), [&](Var r) {
      Site site = span.site;
      place(b_, site, r, traced_.elements, extents_);
      emitter_.hoist_addresses(site);
      const Var p = (r % lanes_) * lanes_;
      rows_.each(b_, site, span, [&](const Site& at, Var vector) { add(at, partial(vector) + p); });
    });
    rows_.each(b_, span.site, span,
               [&](const Site& at, Var vector) { finish(at, combined(partial(vector))); });
  }

  // The same over whole rows, block by block.
  void reduce_rows(const LaneRows::Span& span, const Finish& finish) {
    if (traced_.count <= kSumBlock) return reduce_range(span, b_.i64(0), count_, finish);
    clear(totals_, span.count * lanes_);
    b_.loop(b_.i64(0), count_, b_.i64(kSumBlock), [&](Var begin) {
      reduce_range(span, begin, min(begin + kSumBlock, count_),
                   [&](const Site& at, const std::vector<Var>& results) {
                     const Var to = total_of(at, span);
                     for (std::size_t k = 0; k < results.size(); ++k)
                       b_.store(totals_[k], to,
                                combine(b_, traced_.reductions[k], b_.load(totals_[k], to, lanes_),
                                        results[k]));
                   });
    });
    rows_.each(b_, span.site, span, [&](const Site& at, Var) {
      std::vector<Var> totals;
      for (const kir::BufferId total : totals_)
        totals.push_back(b_.load(total, total_of(at, span), lanes_));
      finish(at, totals);
    });
  }

 private:
  std::vector<kir::BufferId> make_scratch(const char* name, std::int64_t per_vector) {
    std::vector<kir::BufferId> made;
    for (std::size_t k = 0; k < traced_.reductions.size(); ++k)
      made.push_back(b_.scratch(fmt::format("{}{}", name, k), traced_.reductions[k].dtype,
                                rows_.width * per_vector * lanes_));
    return made;
  }
  Var partial(Var vector) { return vector * (lanes_ * lanes_); }
  Var total_of(const Site& at, const LaneRows::Span& span) {
    return at.loops[at.lane_loop.index()] - span.begin;
  }

  void clear(const std::vector<kir::BufferId>& scratch, Var size) {
    b_.loop(b_.i64(0), size, b_.i64(lanes_), [&](Var at) {
      for (std::size_t k = 0; k < scratch.size(); ++k)
        b_.store(scratch[k], at, start_of(b_, traced_.reductions[k], lanes_));
    });
  }

  void add(const Site& at, Var to) {
    emitter_.enter(at);
    for (std::size_t k = 0; k < partials_.size(); ++k) {
      const Reduction& reduction = traced_.reductions[k];
      const Var x = emitter_.value(reduction.operand, traced_.reduced);
      b_.store(partials_[k], to, combine(b_, reduction, b_.load(partials_[k], to, lanes_), x));
    }
  }

  std::vector<Var> combined(Var from) {
    std::vector<Var> results;
    for (std::size_t k = 0; k < partials_.size(); ++k) {
      std::vector<Var> all;
      for (int p = 0; p < lanes_; ++p)
        all.push_back(b_.load(partials_[k], from + std::int64_t{p} * lanes_, lanes_));
      for (std::size_t half = all.size() / 2; half > 0; half /= 2)
        for (std::size_t p = 0; p < half; ++p)
          all[p] = combine(b_, traced_.reductions[k], all[p], all[p + half]);
      results.push_back(all[0]);
    }
    return results;
  }

  kir::Builder& b_;
  const TracedReduce& traced_;
  const LaneRows& rows_;
  int lanes_;
  std::vector<kir::BufferId> partials_, totals_;
  Var count_;
  std::vector<Var> extents_;
  Emitter emitter_;
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
  ColumnReducer reducer(b, context, traced, rows, arguments);
  reducer.reduce_rows(rows.span(b, b.item()),
                      [&](const Site& site, const std::vector<Var>& results) {
                        for (std::size_t k = 0; k < results.size(); ++k)
                          provide_result(reducer.emitter(), traced.reductions[k], results[k]);
                        reducer.emitter().enter(site);
                        std::vector<Var> values;
                        for (const ReduceOutput& o : traced.outputs)
                          values.push_back(reducer.emitter().value(o.to.value, o.at));
                        for (std::size_t k = 0; k < values.size(); ++k)
                          store_output(b, writes[k], site, values[k]);
                      });

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
    const LaneRows lane_rows(b, context, traced, *lane_row, arguments, blocks);
    ColumnReducer reducer(b, context, traced, lane_rows, arguments);
    const LaneRows::Span span = lane_rows.span(b, group);
    // Rows are numbered with the lanes' loop last.
    const Var first = block * rows + span.row * lane_rows.length;
    reducer.reduce_range(span, begin, end, [&](const Site& site, const std::vector<Var>& results) {
      for (std::size_t k = 0; k < results.size(); ++k)
        b.store(arguments.id(partials[k]), first + site.loops[site.lane_loop.index()], results[k],
                site.mask);
    });
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
