// What a group of reductions reads, its levels and its loops; and the arithmetic of partial
// results.
#include "schedule/common/reduce/traced.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include "ops/face.h"
#include "ops/reduce.h"
#include "schedule/scalar_ops.h"

namespace pantala::schedule {

using kir::Var;

namespace {

kir::Op reduction_op(const ir::OpDef& op) {
  if (ops::is<op::Sum>(op)) return kir::Op::add;
  return ops::is<op::Amax>(op) ? kir::Op::max : kir::Op::min;
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

bool TracedReduce::has_full_outputs() const {
  return std::any_of(outputs.begin(), outputs.end(),
                     [](const ReduceOutput& o) { return !o.per_row; });
}

double TracedReduce::flops() const {
  const double row_count = static_cast<double>(total(rows));
  const double element = footprint.cost - row_cost + static_cast<double>(reductions.size());
  return row_count * (element * static_cast<double>(count) + row_cost);
}

bool has_lanes(const TracedReduce& traced, int lanes) {
  return traced.elements.size() <= 1 || traced.elements.back().extent % lanes == 0;
}

namespace {

// What a pass over a row walks.
struct PassWalks {
  std::vector<Affine> walks;
  std::array<bool, kMaxLoops> counted = {};

  void add(const Footprint& reads) {
    for (const Affine& walk : walks_of(reads)) walks.push_back(walk);
    for (std::size_t d = 0; d < kMaxLoops; ++d) counted[d] = counted[d] || reads.counted[d];
  }
  void add(const PassWalks& other) {
    walks.insert(walks.end(), other.walks.begin(), other.walks.end());
    for (std::size_t d = 0; d < kMaxLoops; ++d) counted[d] = counted[d] || other.counted[d];
  }
  std::vector<Loop> loops(const Domain& domain, const std::vector<int>& order) const {
    return collapse(domain, order, walks, counted);
  }
};

class Tracer {
 public:
  Tracer(const Context& context, const ReduceGroup& group)
      : context_(context), group_(group), loops_(loops_of(context, group).value()) {
    traced_.domain = loops_.domain;
    traced_.reduced = loops_.reduced;
    for (const std::int64_t axis : group.axes) traced_.count *= group.full[static_cast<int>(axis)];
  }

  TracedReduce run() {
    for (const ValueId id : group_.reductions) add_reduction(id);
    for (const GroupOutput& output : group_.outputs) add_output(output);
    find_loops();
    return std::move(traced_);
  }

 private:
  Footprint trace(ValueId value, const Indices& at) const {
    return schedule::trace(context_.info(), traced_.domain, {value}, at,
                           [&](ValueId id) { return levels_.contains(id); });
  }

  void add_reduction(ValueId id) {
    const ir::Node& n = context_.node(id.node);
    Reduction r{id,
                n.inputs[0],
                reduction_op(*n.op),
                kir::register_dtype(n.results[0].dtype),
                n.results[0].dtype,
                row_indices(group_, loops_, n.results[0].shape)};
    const Footprint reads = trace(r.operand, traced_.reduced);
    r.level = 1 + level_of(reads, levels_);
    merge(traced_.footprint, reads);
    reducing_.add(reads);
    levels_.emplace(id, r.level);
    traced_.reductions.push_back(r);
    traced_.levels = std::max(traced_.levels, r.level);
  }

  void add_output(const GroupOutput& output) {
    const Shape& shape = context_.type(output.value).shape;
    ReduceOutput o{output, is_row_shape(group_, shape), {}, {}, 0};
    o.at = o.per_row ? row_indices(group_, loops_, shape) : full_indices(loops_, shape);
    const Footprint reads = trace(output.value, o.at);
    o.level = level_of(reads, levels_);
    merge(traced_.footprint, reads);
    merge(traced_.made_of_rows, reads);
    if (o.per_row) traced_.row_cost += reads.cost;
    o.write = normalised(flatten(o.at, context_.strides(output)).affine, traced_.domain);
    PassWalks& walks = outputs_.emplace_back();
    walks.add(reads);
    walks.walks.push_back(o.write);
    traced_.outputs.push_back(std::move(o));
  }

  void find_loops() {
    std::vector<int> kept, reduced, stored;  // the reduced ones row-major, which fixes the bits
    for (const int dim : storage_order(traced_.domain, traced_.footprint))
      (is_kept(dim) ? kept : stored).push_back(dim);
    for (int dim = 0; dim < traced_.domain.rank(); ++dim)
      if (!is_kept(dim)) reduced.push_back(dim);
    PassWalks all = reducing_;
    for (const PassWalks& walks : outputs_) all.add(walks);
    traced_.rows = all.loops(traced_.domain, kept);
    PassWalks beside = reducing_;
    for (std::size_t k = 0; k < outputs_.size(); ++k)
      if (is_early(traced_.outputs[k])) beside.add(outputs_[k]);
    traced_.elements = reducing_.loops(traced_.domain, reduced);
    // What would cut the loops of a reduction is made after all of them.
    if (beside.loops(traced_.domain, reduced).size() > traced_.elements.size())
      for (ReduceOutput& o : traced_.outputs)
        if (is_early(o)) o.level = traced_.levels;
    find_loops_of_last(stored, reduced);
  }
  bool is_kept(int dim) const { return loops_.is_kept[static_cast<std::size_t>(dim)]; }
  // Whether it is made in a pass that reduces.
  bool is_early(const ReduceOutput& o) const { return !o.per_row && o.level < traced_.levels; }

  // The last pass sums nothing: it may walk a row as it lies in memory, if vectors fit into that.
  void find_loops_of_last(const std::vector<int>& stored, const std::vector<int>& reduced) {
    PassWalks last;
    for (std::size_t k = 0; k < outputs_.size(); ++k)
      if (!traced_.outputs[k].per_row && traced_.outputs[k].level == traced_.levels)
        last.add(outputs_[k]);
    traced_.made = last.loops(traced_.domain, stored);
    const std::int64_t lanes = context_.target.lanes(DType::f32);
    if (!traced_.made.empty() && traced_.made.back().extent < lanes)
      traced_.made = last.loops(traced_.domain, reduced);
  }

  const Context& context_;
  const ReduceGroup& group_;
  const ReduceLoops loops_;
  TracedReduce traced_;
  std::map<ValueId, int> levels_;
  PassWalks reducing_;
  std::vector<PassWalks> outputs_;  // by output
};

}  // namespace

TracedReduce trace_group(const Context& context, const ReduceGroup& group) {
  return Tracer(context, group).run();
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

namespace {

// How many elements an access comes to.
double reached(const TracedReduce& traced, const Access& access) {
  double elements = 1;
  for (std::size_t d = 0; d < traced.domain.sizes.size(); ++d)
    if (access.flat.coef[d] != 0) elements *= static_cast<double>(traced.domain.sizes[d]);
  return elements;
}

}  // namespace

bool reads_along(const TracedReduce& traced, const Loop& loop) {
  double most = 0;
  for (const Access& access : traced.footprint.accesses)
    most = std::max(most, reached(traced, access));
  return std::ranges::any_of(traced.footprint.accesses, [&](const Access& access) {
    return access.flat.coef[loop.dim.index()] == 1 && reached(traced, access) == most;
  });
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

}  // namespace pantala::schedule
