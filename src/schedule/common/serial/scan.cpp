// Running sums: each line is walked in order, y[i] = y[i - 1] + x[i], with lanes along another
// axis.
#include <fmt/format.h>

#include "ops/face.h"
#include "ops/reduce.h"
#include "schedule/building.h"
#include "schedule/common/serial/parts.h"
#include "schedule/common/serial/serial.h"

namespace pantala::schedule {

using kir::Var;

namespace {

// -0 + x is x for every x, also for x = -0.
Var nothing_yet(kir::Builder& b, kir::VType type) {
  return is_float(type.dtype) ? b.constant(type, -0.0) : b.constant(type, std::int64_t{0});
}

KernelDraft build_scan(Building& building, std::uint32_t node,
                       const std::vector<GroupOutput>& outputs) {
  const Context& context = building.context();
  const ir::Node& n = context.node(node);
  const auto attrs = ir::attributes<op::Cumsum>(n);
  const auto axis = static_cast<int>(attrs.axis);
  const Shape& shape = n.results[0].shape;
  const Domain domain{shape.vec()};
  const Indices at = loop_indices(shape.rank());
  const Footprint reads = trace(context.info(), domain, {n.inputs[0]}, at);
  const std::vector<Affine> writes = writes_of(context, domain, outputs, at);
  std::vector<Affine> walks = walks_of(reads);
  walks.insert(walks.end(), writes.begin(), writes.end());
  const Lines lines = lanes_along(
      context, collapse(domain, other_dims(domain, {axis}), walks, reads.counted), walks);

  Arguments arguments = building.arguments();
  announce_reads(context, reads, arguments);
  for (const GroupOutput& o : outputs) arguments.will_write(o.buffer, n.results[0].dtype);
  kir::Builder b("scan", line_threads(context.target));
  arguments.declare_buffers(b);
  const double line_cost = (reads.cost + 2) * static_cast<double>(shape[axis]) + 16;
  const LineItems items(b, lines, line_cost, arguments);
  const Var size = arguments.integer(b, "size", shape[axis]);
  std::vector<DeclaredAccess> places;
  for (std::size_t k = 0; k < outputs.size(); ++k)
    places.push_back(arguments.access(b, outputs[k].buffer, writes[k]));
  Emitter emitter = make_emitter(b, context, domain, reads, arguments);
  items.run([&](const Site& line) {
    const kir::VType type{kir::register_dtype(n.results[0].dtype), line.lanes};
    b.loop(b.i64(0), size, b.i64(1), {nothing_yet(b, type)}, [&](Var r, std::span<const Var> now) {
      Site site = line;
      site.loops[static_cast<std::size_t>(axis)] = attrs.reverse ? size - 1 - r : r;
      emitter.enter(site);
      const Var sum = now[0] + emitter.value(n.inputs[0], at);
      for (const DeclaredAccess& place : places) store_output(b, place, site, sum);
      return std::vector{sum};
    });
  });
  return finish_draft("scan.cumsum", b, arguments, domain.empty() ? 0 : items.items(),
                      line_cost * static_cast<double>(lines.count() * lines.lanes));
}

}  // namespace

const Archetype& scan_archetype() {
  static const Archetype row = walking_row<build_scan>("scan", {&ops::def<op::Cumsum>()});
  return row;
}

}  // namespace pantala::schedule
