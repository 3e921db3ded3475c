#include "schedule/emitter.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/hash.h"
#include "pantala/error.h"
#include "schedule/scalar_ops.h"

namespace pantala::schedule {

using kir::Var;

namespace {

std::uint64_t key_of(ValueId id) { return (std::uint64_t{id.node} << 8) | id.result; }

std::uint64_t hash_of(ValueId id, const Indices& at) {
  std::uint64_t h = key_of(id);
  const auto mix = [&](std::uint64_t v) { h = (h ^ v) * 0x9e3779b97f4a7c15ULL + (h >> 29); };
  for (const Index& index : at) {
    mix(static_cast<std::uint64_t>(index.affine.constant));
    for (const std::int64_t c : index.affine.coef) mix(static_cast<std::uint64_t>(c));
    mix(index.offset.value().id);
  }
  return h;
}

}  // namespace

bool is_elemental(const ir::OpDef& op) {
  return Emitter::rule_of(op) != nullptr || is_scalar_op(op);
}

bool Footprint::reads(ValueId value) const {
  return std::any_of(accesses.begin(), accesses.end(),
                     [&](const Access& a) { return a.value == value; });
}

Emitter::Emitter(kir::Builder& builder, const ValueInfo& info, Domain domain,
                 const Footprint& footprint, Declared declared)
    : b_(builder),
      info_(info),
      domain_(std::move(domain)),
      footprint_(footprint),
      declared_(std::move(declared)),
      hoisted_(declared_.accesses.size()) {}

Emitter::Emitter(kir::Builder& builder, const ValueInfo& info, Domain domain, Footprint* footprint)
    : b_(builder), info_(info), domain_(std::move(domain)), trace_(footprint) {}

void Emitter::enter(const Site& site) {
  known_.clear();
  bool same_outer = true;
  for (std::size_t d = 0; d < kMaxLoops; ++d)
    if (LoopId(d) != site.lane_loop &&
        site.loops[d].value() != site_.loops[static_cast<std::size_t>(d)].value())
      same_outer = false;
  if (!same_outer || site.lane_loop != site_.lane_loop)
    hoisted_.assign(declared_.accesses.size(), {});
  site_ = site;
  lane_mask_ = site.mask;
  scalar_mask_ = {};
}

void Emitter::hoist_addresses(const Site& site) {
  enter(site);
  for (std::size_t k = 0; k < hoisted_.size(); ++k)
    hoisted_[k] = outer_address(declared_.accesses[k]);
}

Var Emitter::outer_address(const DeclaredAccess& access) {
  Var base = access.constant;
  for (std::size_t d = 0; d < kMaxLoops; ++d) {
    const bool used = access.unit[d] || access.coef[d].valid();
    if (!used || LoopId(d) == site_.lane_loop || !site_.loops[d].valid()) continue;
    const Var term = access.unit[d] ? site_.loops[d] : site_.loops[d] * access.coef[d];
    base = base.valid() ? base + term : term;
  }
  return base.valid() ? base : b_.i64(0);
}

void Emitter::provide(ValueId value, const Indices& at, Var known) {
  provided_.insert_or_assign(key_of(value), Provided{normalised(at), known});
}

Indices Emitter::normalised(Indices at) const {
  for (Index& index : at) index.affine = schedule::normalised(index.affine, domain_);
  return at;
}

Var Emitter::value(ValueId id, const Indices& given) {
  const Indices at = normalised(given);
  if (const auto it = provided_.find(key_of(id)); it != provided_.end()) {
    if (!(it->second.at == at))
      throw InternalError(
          fmt::format("schedule: %{}.{} is known at another element", id.node, id.result));
    return it->second.value;
  }
  if (const Known* known = find_known(id, at)) return known->value;
  const Var result = compute(id, at);
  remember(id, at, result);
  return result;
}

const Emitter::Known* Emitter::find_known(ValueId id, const Indices& at) const {
  const auto [begin, end] = known_.equal_range(hash_of(id, at));
  for (auto it = begin; it != end; ++it) {
    const Known& known = it->second;
    if (known.id == id && known.at == at && known.scalar_mask == scalar_mask_.value() &&
        known.lane_mask == lane_mask_.value())
      return &known;
  }
  return nullptr;
}

void Emitter::remember(ValueId id, const Indices& at, Var value) {
  known_.emplace(hash_of(id, at), Known{id, at, scalar_mask_.value(), lane_mask_.value(), value});
}

Var Emitter::compute(ValueId id, const Indices& at) {
  const ir::Node& node = info_.graph->node(id.node);
  if (info_.emitted) ++*info_.emitted;
  if (trace_) ++trace_->size;
  if (const std::optional<double> splat = ir::splat_value(node)) return leaf_constant(node);
  if (info_.is_host(id)) return uniform(id);
  if (info_.is_stored(id)) return load(id, at);
  if (is_scalar_op(*node.op)) return pointwise(node, at);
  const Rule* rule = rule_of(*node.op);
  if (rule == nullptr)
    throw InternalError(fmt::format("schedule: no element of '{}' can be emitted", node.op->name));
  return (this->*rule->emit)(id, node, at);
}

Var Emitter::leaf_constant(const ir::Node& node) const {
  const DType dtype = kir::register_dtype(node.results[0].dtype);
  const double value = *ir::splat_value(node);
  if (is_float(dtype))
    return b_.constant(kir::VType{dtype, 1}, round_to(node.results[0].dtype, value));
  return b_.constant(kir::VType{dtype, 1}, static_cast<std::int64_t>(value));
}

Var Emitter::pointwise(const ir::Node& node, const Indices& at) {
  std::vector<Var> operands;
  std::vector<DType> dtypes;
  for (const ValueId input : node.inputs) {
    operands.push_back(value(input, at));
    dtypes.push_back(info_.graph->type(input).dtype);
  }
  if (trace_) trace_->cost += scalar_op_cost(*node.op);
  return emit_scalar_op(b_, *node.op, node.attrs, operands, dtypes, node.results[0].dtype);
}

Var Emitter::uniform(ValueId id) {
  const DType dtype = info_.graph->type(id).dtype;
  const DType held = kir::register_dtype(dtype);
  std::vector<ValueId>& list = trace_ ? trace_->uniforms : footprint_.uniforms;
  auto it = std::find(list.begin(), list.end(), id);
  if (trace_) {
    if (it == list.end()) list.push_back(id);
    return is_float(held) ? b_.constant(kir::VType{held, 1}, 0.0)
                          : b_.constant(kir::VType{held, 1}, std::int64_t{0});
  }
  if (it == list.end()) throw InternalError("schedule: a uniform was not traced");
  const Var param = declared_.uniforms[static_cast<std::size_t>(it - list.begin())];
  // The host computes in double.
  return emit_fit(b_, param.dtype() == held ? param : b_.cast(param, held), dtype);
}

Var Emitter::node_number(std::uint32_t node, std::int64_t number) {
  std::vector<NodeNumber>& list = trace_ ? trace_->numbers : footprint_.numbers;
  const auto it = std::find(list.begin(), list.end(), NodeNumber{node, number});
  if (trace_) {
    if (it == list.end()) list.push_back({node, number});
    return b_.i64(number);
  }
  if (it == list.end()) throw InternalError("schedule: a number was not traced");
  return declared_.numbers[static_cast<std::size_t>(it - list.begin())];
}

std::size_t Emitter::find_access(const Access& access) {
  std::vector<Access>& list = trace_ ? trace_->accesses : footprint_.accesses;
  const auto it = std::find(list.begin(), list.end(), access);
  if (it != list.end()) return static_cast<std::size_t>(it - list.begin());
  if (!trace_) throw InternalError("schedule: an access was not traced");
  list.push_back(access);
  trace_->loads.push_back(0);
  return list.size() - 1;
}

Var Emitter::load(ValueId id, const Indices& at) { return load(id, at, info_.strides(id)); }

Var Emitter::load(ValueId id, const Indices& at, const std::vector<std::int64_t>& strides) {
  Access access{id, {}, {}};
  std::vector<Var> offsets;
  for (std::size_t k = 0; k < at.size(); ++k) {
    access.flat = access.flat + at[k].affine * strides[k];
    if (at[k].is_affine()) continue;
    access.offset_strides.push_back(strides[k]);
    offsets.push_back(at[k].offset);
  }
  const std::size_t index = find_access(access);
  const DType dtype = kir::register_dtype(info_.graph->type(id).dtype);
  if (trace_) {
    trace_->cost += 1;
    if (scalar_mask_.valid() || lane_mask_.valid()) trace_->conditional.push_back(id);
    trace_->loads[index] += taps_;
    return is_float(dtype) ? b_.constant(kir::VType{dtype, 1}, 0.0)
                           : b_.constant(kir::VType{dtype, 1}, std::int64_t{0});
  }
  const DeclaredAccess& declared = declared_.accesses[index];
  return load_at(declared, hoisted_[index].valid() ? hoisted_[index] : outer_address(declared),
                 offsets);
}

Var Emitter::load_at(const DeclaredAccess& access, Var base, const std::vector<Var>& offsets) {
  Var spread;  // offsets that differ by lane
  for (std::size_t k = 0; k < offsets.size(); ++k) {
    const Var term = offsets[k] * access.offset_strides[k];
    if (term.lanes() == 1)
      base = base + term;
    else
      spread = spread.valid() ? spread + term : term;
  }
  const std::size_t lane = site_.lane_loop.valid() ? site_.lane_loop.index() : 0;
  const bool along = site_.lane_loop.valid() && (access.unit[lane] || access.coef[lane].valid());
  if (along && site_.loops[lane].valid())
    base = base + (access.unit[lane] ? site_.loops[lane] : site_.loops[lane] * access.coef[lane]);
  const int lanes = site_.lanes;
  if (lanes == 1 || (!along && !spread.valid())) {
    if (spread.valid()) base = base + spread;
    return b_.load(access.buffer, base, 1, mask_of_any());
  }
  const Var mask =
      scalar_mask_.valid() || lane_mask_.valid() ? wide(both(scalar_mask_, lane_mask_)) : Var();
  if (spread.valid()) {
    Var indices = spread + base;
    if (along) {
      const Var steps = b_.iota({DType::i64, lanes});
      indices = indices + (access.unit[lane] ? steps : steps * access.coef[lane]);
    }
    return b_.gather(access.buffer, indices, mask);
  }
  if (access.unit[lane]) return b_.load(access.buffer, base, lanes, mask);
  return b_.load_strided(access.buffer, base, access.coef[lane], lanes, mask);
}

// --- indices

Var Emitter::wide(Var x) {
  return x.lanes() == 1 && site_.lanes > 1 ? b_.splat(x, site_.lanes) : x;
}

Var Emitter::number(const Index& index) {
  Var sum = b_.i64(index.affine.constant);
  for (std::size_t d = 0; d < kMaxLoops; ++d) {
    const std::int64_t coef = index.affine.coef[d];
    if (coef == 0 || (d < domain_.sizes.size() && domain_.sizes[d] == 1)) continue;
    if (trace_) trace_->counted[d] = true;
    Var loop = site_.loops[d].valid() ? site_.loops[d] : b_.i64(0);
    if (LoopId(d) == site_.lane_loop && site_.lanes > 1)
      loop = loop + b_.iota({DType::i64, site_.lanes});
    sum = sum + loop * coef;
  }
  return index.offset.valid() ? sum + index.offset : sum;
}

Index Emitter::quotient(const Index& index, std::int64_t divisor, Index* remainder) {
  if (divisor == 1) {
    if (remainder) *remainder = Index::of(0);
    return index;
  }
  if (index.is_affine())
    if (const std::optional<Split> parts = split(index.affine, divisor, domain_)) {
      if (remainder) *remainder = parts->remainder;
      return parts->quotient;
    }
  const Var n = number(index);
  const Var q = n / divisor;
  if (remainder) *remainder = Index(n - q * divisor);
  return Index(q);
}

Var Emitter::within(const Index& index, std::int64_t low, std::int64_t high) {
  if (index.is_affine()) {
    const Interval all = range(index.affine, domain_);
    if (all.low >= low && all.high < high) return {};
  }
  const Var n = number(index);
  return both(le(like(n, low), n), lt(n, high));
}

Var Emitter::both(Var a, Var b) {
  if (!a.valid() || !b.valid()) return a.valid() ? a : b;
  if (a.lanes() != b.lanes())
    (a.lanes() == 1 ? a : b) = b_.splat(a.lanes() == 1 ? a : b, std::max(a.lanes(), b.lanes()));
  return b_.binary(kir::Op::bit_and, a, b);
}

Var Emitter::mask_of_any() {
  if (!lane_mask_.valid() || lane_mask_.lanes() == 1) return both(scalar_mask_, lane_mask_);
  // The site's own mask only cuts lanes off; what it cuts off is nothing that all lanes share.
  if (lane_mask_.value() == site_.mask.value()) return scalar_mask_;
  return both(scalar_mask_, b_.reduce(kir::Op::reduce_max, lane_mask_));
}

Var Emitter::under(Var condition, const std::function<Var()>& code) {
  if (!condition.valid()) return code();
  const Var scalar = scalar_mask_, lane = lane_mask_;
  if (condition.lanes() == 1)
    scalar_mask_ = both(scalar_mask_, condition);
  else
    lane_mask_ = both(lane_mask_, condition);
  const Var result = code();
  scalar_mask_ = scalar;
  lane_mask_ = lane;
  return result;
}

namespace {

// What some code reads that is emitted by `code` into a kernel that is thrown away.
Footprint traced(const ValueInfo& info, const Domain& domain,
                 const std::function<void(Emitter&)>& code) {
  Footprint footprint;
  kir::Builder builder("trace");
  Emitter emitter(builder, info, domain, &footprint);
  Site site;
  for (int d = 0; d < domain.rank(); ++d)
    site.loops[static_cast<std::size_t>(d)] = builder.param(fmt::format("loop{}", d));
  emitter.enter(site);
  code(emitter);
  return footprint;
}

}  // namespace

Footprint trace(const ValueInfo& info, const Domain& domain, const std::vector<ValueId>& values,
                const Indices& at, const std::function<bool(ValueId)>& provided) {
  ValueInfo outside = info;
  if (provided) outside.is_stored = [&](ValueId id) { return info.is_stored(id) || provided(id); };
  Footprint footprint = traced(outside, domain, [&](Emitter& emitter) {
    for (const ValueId id : values) emitter.value(id, at);
  });
  if (!provided) return footprint;
  for (const Access& access : footprint.accesses)
    if (provided(access.value) && std::find(footprint.provided.begin(), footprint.provided.end(),
                                            access.value) == footprint.provided.end())
      footprint.provided.push_back(access.value);
  for (std::size_t k = footprint.accesses.size(); k-- > 0;)
    if (provided(footprint.accesses[k].value)) {
      footprint.accesses.erase(footprint.accesses.begin() + static_cast<std::ptrdiff_t>(k));
      footprint.loads.erase(footprint.loads.begin() + static_cast<std::ptrdiff_t>(k));
    }
  return footprint;
}

Footprint trace_memory_index(const ValueInfo& info, const Domain& domain, std::uint32_t node,
                             ValueId index, const Indices& at, std::int64_t limit) {
  return traced(info, domain,
                [&](Emitter& emitter) { emitter.memory_index(node, index, at, limit); });
}

}  // namespace pantala::schedule
