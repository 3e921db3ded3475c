// Scatters: what is scattered into is written by a map; then the updates are applied in place, in
// the order of the op. Updates that can meet at one element lie on one line, which belongs to one
// item: the bits do not depend on the number of items.
//  - scatter_add: the index names slices. It is read once for a block of columns, which lanes add
//    to.
//  - scatter_add_elements and scatter: every element has an index of its own, one at a time.
//
// Where memory is contiguous across lines, an item takes a block of neighbouring lines (columns)
// and walks them together, update by update; the threads of a workgroup have a column each.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "ops/face.h"
#include "ops/index.h"
#include "schedule/building.h"
#include "schedule/common/map.h"
#include "schedule/common/serial/parts.h"
#include "schedule/common/serial/serial.h"
#include "schedule/estimate.h"

namespace pantala::schedule {

using kir::Var;

namespace {

constexpr std::int64_t kLeastColumns = 64;  // of an item: a few cache lines of each row

// The updates of a scatter; the loops are the axes of the source.
struct Updates {
  std::uint32_t node = 0;
  ValueId index, source;
  bool adds = true;        // or replaces
  bool slices = true;      // or single elements
  std::int64_t limit = 0;  // size of the axis that the index names
  Domain domain;
  Indices index_at, source_at;
  std::vector<Affine> writes;              // per output, but for the axis
  std::vector<std::int64_t> axis_strides;  // per output
  Footprint index_reads, source_reads;
  std::vector<Loop> walked;  // update by update
  Lines lines;

  double cost() const { return index_reads.cost + source_reads.cost + 3; }
};

// The loop along which the result is contiguous, among those that are not walked.
std::optional<std::size_t> contiguous(const std::vector<Loop>& kept,
                                      const std::vector<Affine>& writes) {
  for (std::size_t k = kept.size(); k-- > 0;)
    if (std::all_of(writes.begin(), writes.end(),
                    [&](const Affine& write) { return write.coef[kept[k].dim.index()] == 1; }))
      return k;
  return std::nullopt;
}

void lay_out_loops(const Context& context, const std::vector<int>& walked, Updates& u) {
  std::vector<Affine> walks = u.writes;
  std::array<bool, kMaxLoops> counted{};
  for (const Footprint* reads : {&u.index_reads, &u.source_reads}) {
    for (const Affine& walk : walks_of(*reads)) walks.push_back(walk);
    for (std::size_t d = 0; d < kMaxLoops; ++d) counted[d] = counted[d] || reads->counted[d];
  }
  u.walked = collapse(u.domain, walked, walks, counted);
  const std::vector<Loop> kept = collapse(u.domain, other_dims(u.domain, walked), walks, counted);
  const std::optional<std::size_t> columns = contiguous(kept, u.writes);
  const bool lanes = u.slices && columns && kept[*columns].extent >= 4;
  u.lines = take_along(kept, columns, lanes ? context.target.lanes(DType::f32) : 1);
}

Updates make_updates(const Context& context, std::uint32_t node,
                     const std::vector<GroupOutput>& outputs) {
  const ir::Node& n = context.node(node);
  const auto axis = static_cast<int>(ir::attributes<op::IndexAttrs>(n).axis);
  Updates u;
  u.node = node;
  u.index = n.inputs[1];
  u.source = n.inputs[2];
  u.adds = !ops::is<op::Scatter>(n);
  u.slices = ops::is<op::ScatterAdd>(n);
  u.limit = n.results[0].shape[axis];
  const Shape &index = context.type(u.index).shape, &source = context.type(u.source).shape;
  u.domain.sizes = source.vec();
  u.source_at = loop_indices(source.rank());
  u.index_at = u.slices ? loop_indices(index.rank(), axis) : u.source_at;
  std::vector<int> walked(static_cast<std::size_t>(u.slices ? index.rank() : 1));
  std::iota(walked.begin(), walked.end(), axis);
  // The result's axes but the one that is named.
  Indices at = u.source_at;
  at.erase(at.begin() + axis, at.begin() + axis + std::ssize(walked));
  at.insert(at.begin() + axis, Index::of(0));
  u.writes = writes_of(context, u.domain, outputs, at);
  for (const GroupOutput& o : outputs)
    u.axis_strides.push_back(context.strides(o)[static_cast<std::size_t>(axis)]);
  u.index_reads = trace_memory_index(context.info(), u.domain, node, u.index, u.index_at, u.limit);
  u.source_reads = trace(context.info(), u.domain, {u.source}, u.source_at);
  lay_out_loops(context, walked, u);
  return u;
}

// The code of the updates.
class Updater {
 public:
  Updater(kir::Builder& b, const Context& context, const Updates& updates,
          const std::vector<GroupOutput>& outputs, Arguments& arguments)
      : b_(b),
        u_(updates),
        index_(make_emitter(b, context, updates.domain, updates.index_reads, arguments)),
        source_(make_emitter(b, context, updates.domain, updates.source_reads, arguments)),
        count_(arguments.integer(b, "updates", total(updates.walked))) {
    for (std::size_t k = 1; k < u_.walked.size(); ++k)
      extents_.push_back(arguments.integer(b, "extent", u_.walked[k].extent));
    for (std::size_t k = 0; k < outputs.size(); ++k)
      places_.push_back(arguments.access(b, outputs[k].buffer, u_.writes[k], {u_.axis_strides[k]}));
  }

  // All updates of the columns [begin, end) of a line's site.
  void run(const Site& line, Var begin, Var end) {
    each_update(line, [&](const Site& site) {
      if (!u_.slices) {
        over_columns(site, begin, end, [&](const Site& at) {
          if_inside(at, [&](Var number) { update(at, number); });
        });
        return;
      }
      if_inside(site, [&](Var number) {
        over_columns(site, begin, end, [&](const Site& at) { update(at, number); });
      });
    });
  }
  // Those of one column alone.
  void run_column(Site line, Var column) {
    if (u_.lines.along) line.loops[u_.lines.along->dim.index()] = column;
    each_update(line, [&](const Site& site) {
      if_inside(site, [&](Var number) { update(site, number); });
    });
  }

 private:
  void each_update(const Site& line, const std::function<void(const Site&)>& code) {
    b_.loop(b_.i64(0), count_, b_.i64(1), [&](Var t) {
      Site site = line;
      place(b_, site, t, u_.walked, extents_);
      code(site);
    });
  }
  // Reads the index at a site without lanes; nothing is done where it is out of range.
  void if_inside(const Site& site, const std::function<void(Var)>& code) {
    index_.enter(site);
    const Emitter::MemoryIndex at = index_.memory_index(u_.node, u_.index, u_.index_at, u_.limit);
    if (at.inside.valid())
      b_.branch(at.inside, [&] { code(at.number); });
    else
      code(at.number);
  }

  void over_columns(Site site, Var begin, Var end, const std::function<void(const Site&)>& code) {
    if (!u_.lines.along) return code(site);
    const std::size_t along = u_.lines.along->dim.index();
    const int lanes = u_.lines.lanes;
    if (lanes > 1) {
      site.lane_loop = u_.lines.along->dim;
      site.lanes = lanes;
      source_.hoist_addresses(site);
    }
    const Var full = lanes > 1 ? begin + (end - begin) / lanes * lanes : end;
    b_.loop(begin, full, b_.i64(lanes), [&](Var column) {
      site.loops[along] = column;
      code(site);
    });
    if (u_.lines.along->extent % lanes == 0) return;
    b_.branch(lt(full, end), [&] {
      site.loops[along] = full;
      site.mask = lt(b_.iota({DType::i64, lanes}), b_.splat(end - full, lanes));
      code(site);
    });
  }

  void update(const Site& site, Var number) {
    source_.enter(site);
    Var x = source_.value(u_.source, u_.source_at);
    if (x.lanes() < site.lanes) x = b_.splat(x, site.lanes);
    for (const DeclaredAccess& place : places_) {
      const Var at = address(place, site, number);
      b_.store(place.buffer, at, u_.adds ? b_.load(place.buffer, at, site.lanes, site.mask) + x : x,
               site.mask);
    }
  }

  Var address(const DeclaredAccess& place, const Site& site, Var number) {
    Var at = number * place.offset_strides[0];
    for (std::size_t d = 0; d < kMaxLoops; ++d)
      if (site.loops[d].valid() && (place.unit[d] || place.coef[d].valid()))
        at = at + (place.unit[d] ? site.loops[d] : site.loops[d] * place.coef[d]);
    return at;
  }

  kir::Builder& b_;
  const Updates& u_;
  Emitter index_, source_;
  Var count_;
  std::vector<Var> extents_;
  std::vector<DeclaredAccess> places_;
};

// How many columns, or how many lines of all columns, an item takes.
struct Share {
  std::int64_t columns = 1, lines = 1;
};
Share share_of_item(const Updates& u, int threads) {
  if (threads > 1) return {threads, 1};
  const double column_cost = std::max(u.cost() * static_cast<double>(total(u.walked)), 1.0) + 16;
  const std::int64_t all = u.lines.columns();
  const auto worth = static_cast<std::int64_t>(kItemCost / column_cost);
  const std::int64_t columns = std::max(worth, kLeastColumns);
  if (all > columns) return {(columns + u.lines.lanes - 1) / u.lines.lanes * u.lines.lanes, 1};
  return {std::max<std::int64_t>(all, 1),
          std::max<std::int64_t>(1, worth / std::max<std::int64_t>(all, 1))};
}

KernelDraft build_updates(Building& building, std::uint32_t node,
                          const std::vector<GroupOutput>& outputs) {
  const Context& context = building.context();
  const ir::Node& n = context.node(node);
  const Updates u = make_updates(context, node, outputs);
  Arguments arguments = building.arguments();
  announce_reads(context, u.index_reads, arguments);
  announce_reads(context, u.source_reads, arguments);
  for (const GroupOutput& o : outputs) {
    arguments.will_write(o.buffer, n.results[0].dtype);
    if (u.adds) arguments.will_read(o.buffer, n.results[0].dtype);
  }
  kir::Builder b("scatter", line_threads(context.target));
  arguments.declare_buffers(b);
  const Share share = share_of_item(u, b.threads());
  const std::int64_t line_count = total(u.lines.outer), column_count = u.lines.columns();
  const Var lines = arguments.integer(b, "lines", line_count),
            line_step = arguments.integer(b, "item_lines", share.lines),
            columns = arguments.integer(b, "columns", column_count),
            column_step = arguments.integer(b, "item_columns", share.columns);
  std::vector<Var> extents;
  for (std::size_t k = 1; k < u.lines.outer.size(); ++k)
    extents.push_back(arguments.integer(b, "extent", u.lines.outer[k].extent));
  Updater updater(b, context, u, outputs, arguments);
  const Var across = (columns + column_step - 1) / column_step;
  const Var block = b.item() / across, begin = (b.item() - block * across) * column_step,
            end = min(begin + column_step, columns);
  const Var first = block * line_step;
  const auto at_line = [&](Var line) {
    Site site;
    place(b, site, line, u.lines.outer, extents);
    return site;
  };
  if (b.threads() > 1) {
    const Var column = begin + b.thread();
    b.branch(lt(column, end), [&] { updater.run_column(at_line(first), column); });
  } else {
    b.loop(first, min(first + line_step, lines), b.i64(1),
           [&](Var line) { updater.run(at_line(line), begin, end); });
  }
  const std::int64_t items = ((line_count + share.lines - 1) / share.lines) *
                             ((column_count + share.columns - 1) / share.columns);
  const double elements = static_cast<double>(line_count * column_count * total(u.walked));
  return finish_draft(fmt::format("updates.{}", n.op->name), b, arguments,
                      u.domain.empty() ? 0 : items, u.cost() * elements);
}

// Two kernels: one writes what is scattered into, the other applies the updates in place.
std::vector<KernelDraft> build_scatter(Building& building, const Group& group) {
  const ir::Node& n = building.context().node(group.anchors[0]);
  std::vector<GroupOutput> base;
  for (const GroupOutput& o : group.outputs) base.push_back({n.inputs[0], o.buffer});
  const Archetype& map = building.context().archetypes.map();
  KernelDraft fill = map.build(building, {.archetype = &map, .outputs = base})[0];
  fill.name = fmt::format("base.{}", n.op->name);
  return {std::move(fill), build_updates(building, group.anchors[0], group.outputs)};
}

constexpr int kBase = 0, kUpdates = 1;  // the two kernels

// The updates touch what their indices name, and no more.
Work work_of_scatter(const Context& context, const Group& group) {
  const std::uint32_t node = group.anchors[0];
  std::vector<GroupOutput> base;
  for (const GroupOutput& o : group.outputs)
    base.push_back({context.node(node).inputs[0], o.buffer});
  Work work = work_of_map(context, base, kBase);
  const Updates u = make_updates(context, node, group.outputs);
  const Walk walk{.domain = u.domain, .kernel = kUpdates};
  add_reads(context, walk, u.index_reads, work);
  add_reads(context, walk, u.source_reads, work);
  for (std::size_t k = 0; k < group.outputs.size(); ++k) {
    const Access place{{}, u.writes[k], {u.axis_strides[k]}};
    if (u.adds) add_access(context, walk, group.outputs[k].buffer, false, place, 1, work);
    add_access(context, walk, group.outputs[k].buffer, true, place, 1, work);
  }
  work.flops += u.cost() * static_cast<double>(Shape(u.domain.sizes).numel());
  return work;
}

std::vector<Effort> efforts_of_scatter(const EffortSite& at) {
  std::vector<Effort> efforts;
  for (const int kernel : {kBase, kUpdates})
    efforts.push_back({.cycles = elementwise_cycles(at.work, at.table, kernel), .items = 16});
  return efforts;
}

// Elements of all operands, in no order that is known.
Reads reads_of_scatter(const Context& context, const ValueInfo& info, std::uint32_t node) {
  const ir::Node& n = context.node(node);
  std::vector<ValueId> values;
  for (const ValueId input : n.inputs)
    for (const Access& access : reads_of(info, input, context.type(input).shape).accesses)
      values.push_back(access.value);
  return reads_whole(n.results[0].shape, values);
}

}  // namespace

const Archetype& scatter_archetype() {
  static const Archetype row{
      .name = "scatter",
      .ops = {&ops::def<op::ScatterAdd>(), &ops::def<op::ScatterAddElements>(),
              &ops::def<op::Scatter>()},
      .reads = reads_of_scatter,
      .work = work_of_scatter,
      .efforts = efforts_of_scatter,
      .build = build_scatter,
  };
  return row;
}

}  // namespace pantala::schedule
