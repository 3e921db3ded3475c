// What a group of reductions reads, its levels and its loops; and the arithmetic of partial
// results.
#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include "ops/face.h"
#include "ops/reduce.h"
#include "schedule/cpu/reduce/parts.h"
#include "schedule/scalar_ops.h"

namespace pantala::schedule::cpu {

using kir::Var;

namespace {

kir::Op reduction_op(const ir::OpDef& op) {
  if (ops::is<op::Sum>(op)) return kir::Op::add;
  return ops::is<op::Amax>(op) ? kir::Op::max : kir::Op::min;
}

bool is_reduced(const ReduceGroup& group, int axis) {
  return std::binary_search(group.axes.begin(), group.axes.end(), axis);
}

// The element that a full-shaped index tuple has in a value of the group.
Indices indices_of(const ReduceGroup& group, const Shape& shape) {
  return shape == group.full ? loop_indices(shape.rank()) : row_indices(group, shape);
}

// Levels of the values that a traced piece of code waits for.
int level_of(const Footprint& footprint, const std::map<ValueId, int>& levels) {
  int level = 0;
  for (const ValueId id : footprint.provided) level = std::max(level, levels.at(id));
  return level;
}

void merge(Footprint& all, const Footprint& more) {
  for (std::size_t k = 0; k < more.accesses.size(); ++k) {
    const auto known = std::find(all.accesses.begin(), all.accesses.end(), more.accesses[k]);
    if (known != all.accesses.end()) {
      all.loads[static_cast<std::size_t>(known - all.accesses.begin())] += more.loads[k];
      continue;
    }
    all.accesses.push_back(more.accesses[k]);
    all.loads.push_back(more.loads[k]);
  }
  for (const ValueId id : more.uniforms)
    if (std::find(all.uniforms.begin(), all.uniforms.end(), id) == all.uniforms.end())
      all.uniforms.push_back(id);
  for (const NodeNumber& number : more.numbers)
    if (std::find(all.numbers.begin(), all.numbers.end(), number) == all.numbers.end())
      all.numbers.push_back(number);
  for (std::size_t d = 0; d < kMaxLoops; ++d) all.counted[d] = all.counted[d] || more.counted[d];
  all.cost += more.cost;
}

// The axes in the order in which the widest read value stores them, so that loops follow memory.
std::vector<int> storage_order(const Domain& domain, const Footprint& footprint) {
  std::vector<int> order(domain.sizes.size());
  std::iota(order.begin(), order.end(), 0);
  const Access* widest = nullptr;
  int most = 0;
  for (const Access& access : footprint.accesses) {
    const int used = static_cast<int>(std::count_if(
        access.flat.coef.begin(), access.flat.coef.end(), [](auto c) { return c != 0; }));
    if (used > most) widest = &access, most = used;
  }
  if (widest == nullptr) return order;
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return std::abs(widest->flat.coef[static_cast<std::size_t>(a)]) >
           std::abs(widest->flat.coef[static_cast<std::size_t>(b)]);
  });
  return order;
}

}  // namespace

Indices row_indices(const ReduceGroup& group, const Shape& shape) {
  Indices at;
  const bool keeps = shape.rank() == group.full.rank();
  for (int axis = 0; axis < group.full.rank(); ++axis) {
    if (!is_reduced(group, axis))
      at.emplace_back(Affine::loop(axis));
    else if (keeps)
      at.push_back(Index::of(0));
  }
  return at;
}

bool TracedReduce::has_full_outputs() const {
  return std::any_of(outputs.begin(), outputs.end(),
                     [](const ReduceOutput& o) { return !o.per_row; });
}

double TracedReduce::flops() const {
  const double row_count = static_cast<double>(total(rows));
  const double element = footprint.cost - row_cost + static_cast<double>(reductions.size());
  return row_count * (element * static_cast<double>(count) + row_cost);
}

TracedReduce trace_group(const Context& context, const ReduceGroup& group) {
  TracedReduce traced;
  traced.domain.sizes = group.full.vec();
  for (const std::int64_t axis : group.axes) traced.count *= group.full[static_cast<int>(axis)];
  std::map<ValueId, int> levels;
  const auto provided = [&](ValueId id) { return levels.contains(id); };
  std::vector<Affine> walks;
  for (const ValueId id : group.reductions) {
    const ir::Node& n = context.node(id.node);
    Reduction r{id,
                n.inputs[0],
                reduction_op(*n.op),
                kir::register_dtype(n.results[0].dtype),
                n.results[0].dtype,
                row_indices(group, n.results[0].shape)};
    const Footprint reads = trace(context.info(), traced.domain, {r.operand},
                                  loop_indices(group.full.rank()), provided);
    r.level = 1 + level_of(reads, levels);
    merge(traced.footprint, reads);
    levels.emplace(id, r.level);
    traced.reductions.push_back(r);
    traced.levels = std::max(traced.levels, r.level);
  }
  for (const GroupOutput& output : group.outputs) {
    const Shape& shape = context.type(output.value).shape;
    ReduceOutput o{output,
                   !(shape == group.full && !is_row_shape(group, shape)),
                   indices_of(group, shape),
                   {},
                   0};
    if (o.per_row) o.at = row_indices(group, shape);
    const Footprint reads = trace(context.info(), traced.domain, {output.value}, o.at, provided);
    o.level = level_of(reads, levels);
    merge(traced.footprint, reads);
    merge(traced.made_of_rows, reads);
    if (o.per_row) traced.row_cost += reads.cost;
    o.write = normalised(flatten(o.at, context.strides(output)).affine, traced.domain);
    walks.push_back(o.write);
    traced.outputs.push_back(std::move(o));
  }
  for (const Affine& walk : walks_of(traced.footprint)) walks.push_back(walk);
  std::vector<int> kept, reduced;
  for (const int axis : storage_order(traced.domain, traced.footprint))
    if (!is_reduced(group, axis)) kept.push_back(axis);
  for (int axis = 0; axis < group.full.rank(); ++axis)
    if (is_reduced(group, axis)) reduced.push_back(axis);  // in row-major order: it fixes the bits
  traced.rows = collapse(traced.domain, kept, walks, traced.footprint.counted);
  traced.elements = collapse(traced.domain, reduced, walks, traced.footprint.counted);
  return traced;
}

// Partial results.

Var start_of(kir::Builder& b, const Reduction& r, int lanes) {
  const kir::VType type{r.dtype, lanes};
  const bool is_max = r.op == kir::Op::max;
  if (r.op == kir::Op::add)
    return is_float(r.dtype) ? b.constant(type, 0.0) : b.constant(type, std::int64_t{0});
  if (is_float(r.dtype)) return b.constant(type, is_max ? -INFINITY : INFINITY);
  using Int = std::numeric_limits<std::int32_t>;
  using Long = std::numeric_limits<std::int64_t>;
  if (r.dtype == DType::i32)
    return b.constant(type, std::int64_t{is_max ? Int::min() : Int::max()});
  return b.constant(type, is_max ? Long::min() : Long::max());
}

Var nothing(kir::Builder& b, const Reduction& r) { return start_of(b, r, 1); }

Var combine(kir::Builder& b, const Reduction& r, Var a, Var x) {
  if (x.lanes() < a.lanes()) x = b.splat(x, a.lanes());
  return b.binary(r.op, a, x);
}

Var finish(kir::Builder& b, const Reduction& r, Var partials) {
  if (partials.lanes() == 1) return partials;
  return b.reduce(r.op == kir::Op::add   ? kir::Op::reduce_add
                  : r.op == kir::Op::max ? kir::Op::reduce_max
                                         : kir::Op::reduce_min,
                  partials);
}

void provide_result(Emitter& emitter, const Reduction& r, Var result) {
  emitter.provide(r.value, r.at, emit_fit(emitter.builder(), result, r.result));
}

// Arguments.

void announce_reads(const Context& context, const Footprint& footprint, Arguments& arguments) {
  for (const Access& access : footprint.accesses)
    arguments.will_read(context.buffer_of(access.value), context.type(access.value).dtype);
}

Emitter make_emitter(kir::Builder& b, const Context& context, const Domain& domain,
                     const Footprint& footprint, Arguments& arguments) {
  Declared declared =
      arguments.declare(b, footprint, [&](ValueId id) { return context.buffer_of(id); });
  return {b, context.info(), domain, footprint, std::move(declared)};
}

}  // namespace pantala::schedule::cpu
