// An item of a map is a few rows, or a part of one.
#include "schedule/cpu/map/map.h"

#include <fmt/format.h>

#include <algorithm>

#include "schedule/common/map.h"

namespace pantala::schedule::cpu {

using kir::Var;

namespace {

constexpr double kItemCost = 16384;    // additions that are worth handing to a worker
constexpr double kSerialCost = 16384;  // less than this is not worth sharing out

// How a map is cut into items.
struct Split2d {
  std::int64_t rows = 1, columns = 1;  // of the whole
  std::int64_t item_rows = 1, item_columns = 1;
  std::int64_t items() const {
    return ((rows + item_rows - 1) / item_rows) * ((columns + item_columns - 1) / item_columns);
  }
};

Split2d split_items(std::int64_t rows, std::int64_t columns, double cost, int lanes) {
  Split2d parts{rows, columns, 1, columns};
  const auto elements =
      std::clamp<std::int64_t>(static_cast<std::int64_t>(kItemCost / cost), 256, 16384);
  if (columns > elements) {
    const std::int64_t step = std::int64_t{lanes} * 4;
    parts.item_columns = (elements + step - 1) / step * step;
  } else if (columns > 0) {
    parts.item_rows = std::max<std::int64_t>(1, elements / columns);
  }
  return parts;
}

// The columns from begin to end of one row, in vectors and then the rest under a mask.
void emit_row(kir::Builder& b, BodyEmitter& body, Site site, Var begin, Var end, int lanes) {
  const std::size_t lane = site.lane_loop.index();
  if (lanes == 1) {
    b.loop(begin, end, b.i64(1), [&](Var x) {
      site.loops[lane] = x;
      body.run(site);
    });
    return;
  }
  const Var full = begin + (end - begin) / lanes * lanes;
  b.loop(begin, full, b.i64(lanes), [&](Var x) {
    site.loops[lane] = x;
    body.run(site);
  });
  b.branch(lt(full, end), [&] {
    site.loops[lane] = full;
    site.mask = lt(b.iota({DType::i64, lanes}), b.splat(end - full, lanes));
    body.run(site);
  });
}

}  // namespace

KernelDraft build_map(Building& building, const std::vector<GroupOutput>& outputs) {
  const Context& context = building.context();
  const ElementwiseBody body = map_body(context, outputs);
  const Domain& domain = body.domain;
  const Shape shape(domain.sizes);
  const std::vector<Loop> loops = collapse(domain, context.buffer(outputs[0].buffer).order,
                                           all_walks(body), body.footprint.counted);
  Arguments arguments = building.arguments();
  announce(context, body, arguments);
  kir::Builder b("map");
  arguments.declare_buffers(b);

  KernelDraft draft;
  draft.name = fmt::format("map.{}", context.node(outputs[0].value.node).op->name);
  const double elements = static_cast<double>(shape.numel());
  const double cost = body.footprint.cost + static_cast<double>(outputs.size());
  draft.flops = elements * body.footprint.cost;

  if (loops.empty()) {
    BodyEmitter emitter(b, context, body, arguments);
    emitter.run({});
    draft.set.items = domain.empty() ? 0 : 1;
    draft.serial = true;
  } else {
    const std::vector<Loop> outer(loops.begin(), loops.end() - 1);
    const std::int64_t columns = loops.back().extent;
    const int lanes = columns < 4 ? 1 : context.target.lanes(DType::f32);
    const Split2d parts = split_items(total(outer), columns, cost, lanes);
    const Var n = arguments.integer(b, "columns", columns);
    Site site;
    site.lane_loop = loops.back().dim;
    site.lanes = lanes;
    if (outer.empty()) {
      const Var step = arguments.integer(b, "item_columns", parts.item_columns);
      BodyEmitter emitter(b, context, body, arguments);
      const Var begin = b.item() * step;
      emitter.emitter().hoist_addresses(site);
      emit_row(b, emitter, site, begin, min(begin + step, n), lanes);
    } else {
      const Var rows = arguments.integer(b, "rows", parts.rows),
                row_step = arguments.integer(b, "item_rows", parts.item_rows),
                step = arguments.integer(b, "item_columns", parts.item_columns);
      std::vector<Var> extents;
      for (std::size_t k = 1; k < outer.size(); ++k)
        extents.push_back(arguments.integer(b, "extent", outer[k].extent));
      BodyEmitter emitter(b, context, body, arguments);
      const Var across = (n + step - 1) / step;
      const Var block = b.item() / across, begin = (b.item() - block * across) * step;
      const Var first = block * row_step;
      b.loop(first, min(first + row_step, rows), b.i64(1), [&](Var row) {
        Site at = site;
        place(b, at, row, outer, extents);
        emitter.emitter().hoist_addresses(at);
        emit_row(b, emitter, at, begin, min(begin + step, n), lanes);
      });
    }
    draft.set.items = domain.empty() ? 0 : parts.items();
    draft.serial = elements * cost < kSerialCost;
  }
  draft.kernel = b.finish();
  draft.set.buffers = arguments.buffers();
  draft.set.params = arguments.params();
  return draft;
}

const Archetype& map_archetype() {
  static const Archetype row = map_row([](Building& building, const Group& group) {
    return std::vector{build_map(building, group.outputs)};
  });
  return row;
}

}  // namespace pantala::schedule::cpu
