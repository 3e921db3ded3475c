#include "schedule/common/elementwise.h"

#include <fmt/format.h>

#include <algorithm>

#include "ops/index.h"
#include "pantala/error.h"

namespace pantala::schedule {

using kir::Var;

namespace {

ElementwiseBody traced_body(const Context& context, ValueInfo info,
                            std::vector<GroupOutput> outputs, const Domain& domain,
                            const std::function<bool(ValueId)>& provided) {
  ElementwiseBody body;
  body.info = std::move(info);
  body.domain = domain;
  body.outputs = std::move(outputs);
  const int rank = context.type(body.outputs[0].value).shape.rank();
  body.at = loop_indices(rank);
  std::vector<ValueId> values;
  for (const GroupOutput& output : body.outputs) {
    values.push_back(output.value);
    body.writes.push_back(normalised(flatten(body.at, context.strides(output)).affine, domain));
  }
  body.footprint = trace(body.info, domain, values, body.at, provided);
  return body;
}

}  // namespace

ElementwiseBody make_body(const Context& context, std::vector<GroupOutput> outputs,
                          const Domain& domain, const std::function<bool(ValueId)>& provided) {
  return traced_body(context, context.info(), std::move(outputs), domain, provided);
}

ElementwiseBody make_window_body(const Context& context, const GroupOutput& output) {
  const ir::Node& node = context.node(output.value.node);
  ValueInfo info = context.info();
  info.window = output.value;
  ElementwiseBody body = traced_body(context, std::move(info), {output},
                                     {context.type(node.inputs[1]).shape.vec()}, {});
  body.window_stride =
      context.strides(output)[static_cast<std::size_t>(ir::attributes<op::UpdateSlice>(node).axis)];
  return body;
}

std::vector<Affine> all_walks(const ElementwiseBody& body) {
  std::vector<Affine> walks = walks_of(body.footprint);
  walks.insert(walks.end(), body.writes.begin(), body.writes.end());
  return walks;
}

Work work_of(const Context& context, const ElementwiseBody& body, int kernel) {
  Walk walk{.domain = body.domain, .kernel = kernel};
  // Lanes run where the first output is contiguous.
  for (std::size_t d = 0; d < body.domain.sizes.size(); ++d)
    if (body.domain.sizes[d] > 1 && body.writes[0].coef[d] == 1) walk.lane = LoopId(d);
  Work work;
  add_reads(context, walk, body.footprint, work);
  for (std::size_t k = 0; k < body.outputs.size(); ++k)
    add_write(context, walk, body.outputs[k].buffer, body.writes[k], work);
  work.flops = body.footprint.cost * static_cast<double>(Shape(body.domain.sizes).numel());
  return work;
}

void announce(const Context& context, const ElementwiseBody& body, Arguments& arguments) {
  for (const Access& access : body.footprint.accesses)
    arguments.will_read(context.buffer_of(access.value), context.type(access.value).dtype);
  for (const GroupOutput& output : body.outputs)
    arguments.will_write(output.buffer, context.type(output.value).dtype);
}

namespace {

std::vector<DeclaredAccess> declare_writes(kir::Builder& b, const ElementwiseBody& body,
                                           Arguments& arguments) {
  std::vector<DeclaredAccess> writes;
  for (std::size_t k = 0; k < body.outputs.size(); ++k)
    writes.push_back(arguments.access(b, body.outputs[k].buffer, body.writes[k]));
  return writes;
}

Emitter make_emitter(kir::Builder& b, const Context& context, const ElementwiseBody& body,
                     Arguments& arguments) {
  Declared declared =
      arguments.declare(b, body.footprint, [&](ValueId id) { return context.buffer_of(id); });
  return {b, body.info, body.domain, body.footprint, std::move(declared)};
}

}  // namespace

BodyEmitter::BodyEmitter(kir::Builder& b, const Context& context, const ElementwiseBody& body,
                         Arguments& arguments)
    : b_(b),
      body_(body),
      writes_(declare_writes(b, body, arguments)),
      emitter_(make_emitter(b, context, body, arguments)) {}

void BodyEmitter::run(const Site& site) {
  emitter_.enter(site);
  std::vector<Var> values;
  for (const GroupOutput& output : body_.outputs)
    values.push_back(emitter_.value(output.value, body_.at));
  for (std::size_t k = 0; k < values.size(); ++k) store(k, site, values[k]);
}

void BodyEmitter::store(std::size_t output, const Site& site, Var value) {
  const Var moved = body_.info.window ? emitter_.window_start() * body_.window_stride : Var();
  store_output(b_, writes_[output], site, value, moved);
}

void store_output(kir::Builder& b, const DeclaredAccess& write, const Site& site, Var value,
                  Var moved) {
  Var address = write.constant.valid() ? write.constant : b.i64(0);
  if (moved.valid()) address = address + moved;
  for (std::size_t d = 0; d < kMaxLoops; ++d)
    if (site.loops[d].valid() && (write.unit[d] || write.coef[d].valid()))
      address = address + (write.unit[d] ? site.loops[d] : site.loops[d] * write.coef[d]);
  if (site.lanes > 1 && value.lanes() == 1) value = b.splat(value, site.lanes);
  // Lanes along an axis of one element: all but the first are masked off, the stride means nothing.
  const Var stride = site.lane_loop.valid() ? write.coef[site.lane_loop.index()] : Var();
  if (site.lanes > 1 && stride.valid())
    b.store_strided(write.buffer, address, stride, value, site.mask);
  else
    b.store(write.buffer, address, value, site.mask);
}

}  // namespace pantala::schedule
