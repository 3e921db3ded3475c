// The emitter's ops that choose elements: movement by affine maps, padding and joining under
// conditions, and reading at indices that come from memory.
#include <unordered_map>

#include "ir/leaves.h"
#include "kir/status_message.h"
#include "ops/arithmetic.h"
#include "ops/face.h"
#include "ops/index.h"
#include "ops/movement.h"
#include "ops/pool.h"
#include "ops/random.h"
#include "ops/slicing.h"
#include "ops/watched.h"
#include "schedule/emitter.h"
#include "schedule/scalar_ops.h"

namespace pantala::schedule {

using ir::Ints;
using kir::Var;

const Emitter::Rule* Emitter::rule_of(const ir::OpDef& op) {
  static const std::unordered_map<const ir::OpDef*, Rule> rules{
      {&ops::def<op::Reshape>(), {Choice::movement, &Emitter::reshape}},
      {&ops::def<op::Apart>(), {Choice::movement, &Emitter::apart}},
      {&ops::def<op::Kept>(), {Choice::movement, &Emitter::apart}},  // the same element, too
      {&ops::def<op::Permute>(), {Choice::movement, &Emitter::permute}},
      {&ops::def<op::BroadcastTo>(), {Choice::movement, &Emitter::broadcast}},
      {&ops::def<op::Slice>(), {Choice::movement, &Emitter::slice}},
      {&ops::def<op::Flip>(), {Choice::movement, &Emitter::flip}},
      {&ops::def<op::Pad>(), {Choice::choosing, &Emitter::pad}},
      {&ops::def<op::Concat>(), {Choice::choosing, &Emitter::concat}},
      {&ops::def<op::Take>(), {Choice::choosing, &Emitter::take}},
      {&ops::def<op::Gather>(), {Choice::choosing, &Emitter::gather}},
      {&ops::def<op::OneHot>(), {Choice::choosing, &Emitter::one_hot}},
      {&ops::def<op::DynamicSlice>(), {Choice::choosing, &Emitter::dynamic_slice}},
      {&ops::def<op::UpdateSlice>(), {Choice::choosing, &Emitter::update_slice}},
      {&ops::def<op::RandomBits>(), {Choice::choosing, &Emitter::random_bits}},
      {&ops::def<op::Iota>(), {Choice::choosing, &Emitter::iota}},
      {&ops::def<op::Watched>(), {Choice::choosing, &Emitter::watched}},
      {&ops::def<op::MaxPool2d>(), {Choice::window, &Emitter::max_pool}},
      {&ops::def<op::MaxPool2dGrad>(), {Choice::window, &Emitter::max_pool_grad}},
      {&ops::def<op::AvgPool2d>(), {Choice::window, &Emitter::average_pool}},
      {&ops::def<op::AvgPool2dGrad>(), {Choice::window, &Emitter::average_pool_grad}},
  };
  const auto it = rules.find(&op);
  return it == rules.end() ? nullptr : &it->second;
}

bool is_movement(const ir::OpDef& op) {
  const Emitter::Rule* rule = Emitter::rule_of(op);
  return rule != nullptr && rule->choice == Emitter::Choice::movement;
}

bool is_window(const ir::OpDef& op) {
  const Emitter::Rule* rule = Emitter::rule_of(op);
  return rule != nullptr && rule->choice == Emitter::Choice::window;
}

// A value that is stored in the order of axes in which a permutation gives it: of the permuted one,
// the elements lie row-major.
std::optional<ValueId> Emitter::stored_permuted(ValueId id) const {
  const ir::Node& node = info_.graph->node(id.node);
  if (ops::is<op::Reshape>(node)) return stored_permuted(node.inputs[0]);
  if (!ops::is<op::Permute>(node) || info_.is_stored(id) || !info_.is_stored(node.inputs[0]))
    return std::nullopt;
  const std::vector<std::int64_t> there = info_.strides(node.inputs[0]);
  const Shape& shape = node.results[0].shape;
  const Ints axes = ir::attributes<op::Permute>(node).axes, here = shape.strides();
  for (std::size_t k = 0; k < axes.size(); ++k)
    if (shape[static_cast<int>(k)] != 1 && there[static_cast<std::size_t>(axes[k])] != here[k])
      return std::nullopt;
  return node.inputs[0];
}

// Where elements lie in their row-major order, their number alone says where: to take it apart by
// the sizes of the input would leave no affine index.
Var Emitter::reshape(ValueId, const ir::Node& node, const Indices& at) {
  if (const auto stored = stored_permuted(node.inputs[0]))
    return load(*stored, {flatten(at, node.results[0].shape.strides())}, {1});
  return value(node.inputs[0], reshaped(node, at));
}

Var Emitter::apart(ValueId, const ir::Node& node, const Indices& at) {
  return value(node.inputs[0], at);
}

Var Emitter::permute(ValueId, const ir::Node& node, const Indices& at) {
  Indices source(at.size());
  const Ints axes = ir::attributes<op::Permute>(node).axes;
  for (std::size_t k = 0; k < at.size(); ++k) source[static_cast<std::size_t>(axes[k])] = at[k];
  return value(node.inputs[0], source);
}

Var Emitter::broadcast(ValueId, const ir::Node& node, const Indices& at) {
  const Shape& in = info_.graph->type(node.inputs[0]).shape;
  Indices source(at.end() - in.rank(), at.end());
  for (int k = 0; k < in.rank(); ++k)
    if (in[k] == 1) source[static_cast<std::size_t>(k)] = Index::of(0);
  return value(node.inputs[0], source);
}

Var Emitter::slice(ValueId, const ir::Node& node, const Indices& at) {
  const auto attrs = ir::attributes<op::Slice>(node);
  Indices source;
  for (std::size_t k = 0; k < at.size(); ++k)
    source.push_back(at[k] * attrs.steps[k] + attrs.starts[k]);
  return value(node.inputs[0], source);
}

Var Emitter::flip(ValueId, const ir::Node& node, const Indices& at) {
  const Shape& in = info_.graph->type(node.inputs[0]).shape;
  Indices source = at;
  for (const std::int64_t axis : Ints(ir::attributes<op::Flip>(node).axes)) {
    Index& index = source[static_cast<std::size_t>(axis)];
    index = index * -1 + (in[static_cast<int>(axis)] - 1);
  }
  return value(node.inputs[0], source);
}

Var Emitter::iota(ValueId, const ir::Node& node, const Indices& at) {
  const Var n = number(at[static_cast<std::size_t>(ir::attributes<op::Iota>(node).axis)]);
  return converted(n, node.results[0].dtype);
}

// The first operand; reports if one of them is not finite. The difference of a number to itself is
// 0 if it is finite, else NaN.
Var Emitter::watched(ValueId, const ir::Node& node, const Indices& at) {
  Var first, sum;
  for (const ValueId input : node.inputs) {
    const Var x = value(input, at);
    if (!first.valid()) first = x;
    const Var nothing = x - x;
    if (!sum.valid())
      sum = nothing;
    else
      sum = sum.lanes() == nothing.lanes() ? sum + nothing : wide(sum) + wide(nothing);
    if (trace_) trace_->cost += 1;
  }
  const Var is_finite = eq(sum, like(sum, 0.0));
  report_lanes(eq(is_finite, like(is_finite, 0)), b_.i64(kir::kNotFinite));
  return first;
}

// An i64 as another dtype, as the op cast does it.
Var Emitter::converted(Var n, DType dtype) {
  const DType from = n.dtype();
  return emit_scalar_op(b_, ops::def<op::Cast>(), {dtype}, std::vector{n}, std::vector{from},
                        dtype);
}

// The row-major number of the element, taken apart by the sizes of the input.
Indices Emitter::reshaped(const ir::Node& node, const Indices& at) {
  const Shape &from = info_.graph->type(node.inputs[0]).shape, &to = node.results[0].shape;
  Indices source(static_cast<std::size_t>(from.rank()), Index::of(0));
  if (from.numel() == 0) return source;
  Index flat = flatten(at, to.strides());
  int last = from.rank() - 1;
  for (; last > 0; --last) {
    if (from[last] == 1) continue;
    // What is left belongs to one axis.
    bool is_first = true;
    for (int k = 0; k < last; ++k) is_first = is_first && from[k] == 1;
    if (is_first) break;
    flat = quotient(flat, from[last], &source[static_cast<std::size_t>(last)]);
  }
  if (last >= 0) source[static_cast<std::size_t>(last)] = flat;
  return source;
}

Var Emitter::pad(ValueId, const ir::Node& node, const Indices& at) {
  const Shape& in = info_.graph->type(node.inputs[0]).shape;
  const auto attrs = ir::attributes<op::Pad>(node);
  Indices source;
  Var inside;
  for (int k = 0; k < in.rank(); ++k) {
    const auto axis = static_cast<std::size_t>(k);
    const std::int64_t pitch = attrs.interior[axis] + 1;
    Index index = at[axis] + -attrs.before[axis], rest;
    inside = both(inside, within(index, 0, std::max<std::int64_t>(0, (in[k] - 1) * pitch + 1)));
    if (pitch > 1) {
      index = quotient(index, pitch, &rest);
      inside = both(inside, within(rest, 0, 1));
    }
    source.push_back(index);
  }
  const Var x = under(inside, [&] { return value(node.inputs[0], source); });
  if (!inside.valid()) return x;
  const kir::VType type{x.dtype(), 1};
  const Var other = is_float(x.dtype())
                        ? b_.constant(type, round_to(node.results[0].dtype, attrs.value))
                        : b_.constant(type, static_cast<std::int64_t>(attrs.value));
  return b_.select(inside, x, other);
}

Var Emitter::concat(ValueId, const ir::Node& node, const Indices& at) {
  const auto axis = static_cast<std::size_t>(ir::attributes<op::Concat>(node).axis);
  std::int64_t end = node.results[0].shape[static_cast<int>(axis)];
  Var result;
  for (std::size_t k = node.inputs.size(); k-- > 0;) {
    const std::int64_t size = info_.graph->type(node.inputs[k]).shape[static_cast<int>(axis)];
    if (size == 0) continue;
    const std::int64_t begin = end - size;
    end = begin;
    const Var here = within(at[axis], begin, begin + size);
    Indices source = at;
    source[axis] = at[axis] + -begin;
    const Var x = under(here, [&] { return value(node.inputs[k], source); });
    if (!here.valid()) return x;
    result = result.valid() ? b_.select(here, x, result) : x;
  }
  return result.valid() ? result : no_element(node.results[0].dtype);
}

Emitter::MemoryIndex Emitter::memory_index(std::uint32_t node, ValueId index, const Indices& at,
                                           std::int64_t limit) {
  if (trace_)
    for (const Index& one : at)
      for (std::size_t d = 0; d < kMaxLoops; ++d)
        trace_->leads[d] = trace_->leads[d] || one.affine.coef[d] != 0;
  const Var n = b_.cast(value(index, at), DType::i64);
  // An empty axis has no element that could be in range.
  if (limit > 0 && info_.in_range(index, limit)) return {n, {}};
  const Var inside = both(le(like(n, 0), n), lt(n, limit));
  report_lanes(eq(inside, like(inside, 0)), node_number(node, info_.report_code(node, limit)));
  return {n, inside};
}

void Emitter::report_lanes(Var bad, Var code) {
  bad = both(bad, bad.lanes() > 1 ? both(scalar_mask_, lane_mask_) : mask_of_any());
  b_.report(bad.lanes() > 1 ? b_.reduce(kir::Op::reduce_max, bad) : bad, code);
}

std::optional<std::int64_t> Emitter::known_number(ValueId id) const {
  const ir::Node* node = &info_.graph->node(id.node);
  while (is_movement(*node->op)) node = &info_.graph->node(node->inputs[0].node);
  if (!is_integer(node->results[0].dtype)) return std::nullopt;
  if (const std::optional<double> number = ir::splat_value(*node))
    return static_cast<std::int64_t>(*number);
  if (node->op != &ir::data_op() || node->results[0].shape.numel() != 1) return std::nullopt;
  const ir::LiteralPtr values = ir::attributes<op::Data>(*node).values;
  return values->i()[0];
}

Index Emitter::checked_index(std::uint32_t node, ValueId index, const Indices& at,
                             std::int64_t limit) {
  // A choice that the graph itself makes is a slice.
  if (const auto known = known_number(index); known && *known >= 0 && *known < limit)
    return Index::of(*known);
  const MemoryIndex found = memory_index(node, index, at, limit);
  return Index(found.inside.valid() ? min(max(found.number, 0), limit - 1) : found.number);
}

// There is nothing to read: every index is out of range.
Var Emitter::of_empty_axis(ValueId id, ValueId index, const Indices& at) {
  memory_index(id.node, index, at, 0);
  return no_element(info_.graph->type(id).dtype);
}

// Stands where code for an element is asked for and no element exists.
Var Emitter::no_element(DType dtype) {
  const kir::VType type{kir::register_dtype(dtype), 1};
  return is_float(type.dtype) ? b_.constant(type, 0.0) : b_.constant(type, std::int64_t{0});
}

Var Emitter::take(ValueId id, const ir::Node& node, const Indices& at) {
  const Shape &in = info_.graph->type(node.inputs[0]).shape,
              &chosen = info_.graph->type(node.inputs[1]).shape;
  const auto axis = static_cast<std::ptrdiff_t>(ir::attributes<op::Take>(node).axis);
  const Indices which(at.begin() + axis, at.begin() + axis + chosen.rank());
  if (in[static_cast<int>(axis)] == 0) return of_empty_axis(id, node.inputs[1], which);
  Indices source(at.begin(), at.begin() + axis);
  source.push_back(checked_index(id.node, node.inputs[1], which, in[static_cast<int>(axis)]));
  source.insert(source.end(), at.begin() + axis + chosen.rank(), at.end());
  return value(node.inputs[0], source);
}

Var Emitter::gather(ValueId id, const ir::Node& node, const Indices& at) {
  const auto axis = static_cast<std::size_t>(ir::attributes<op::Gather>(node).axis);
  if (info_.graph->type(node.inputs[0]).shape[static_cast<int>(axis)] == 0)
    return of_empty_axis(id, node.inputs[1], at);
  Indices source = at;
  source[axis] = checked_index(id.node, node.inputs[1], at,
                               info_.graph->type(node.inputs[0]).shape[static_cast<int>(axis)]);
  return value(node.inputs[0], source);
}

Var Emitter::one_hot(ValueId id, const ir::Node& node, const Indices& at) {
  const Indices which(at.begin(), at.end() - 1);
  const Index n =
      checked_index(id.node, node.inputs[0], which, ir::attributes<op::OneHot>(node).classes);
  return converted(b_.cast(eq(number(at.back()), number(n)), DType::i64), node.results[0].dtype);
}

Var Emitter::dynamic_slice(ValueId id, const ir::Node& node, const Indices& at) {
  const auto attrs = ir::attributes<op::DynamicSlice>(node);
  const auto axis = static_cast<std::size_t>(attrs.axis);
  const std::int64_t size = info_.graph->type(node.inputs[0]).shape[static_cast<int>(axis)];
  const std::int64_t places = size - attrs.size + 1;
  Indices source = at;
  source[axis] = at[axis] + checked_index(id.node, node.inputs[1], {}, places);
  return value(node.inputs[0], source);
}

Var Emitter::update_slice(ValueId id, const ir::Node& node, const Indices& at) {
  const auto axis = static_cast<std::size_t>(ir::attributes<op::UpdateSlice>(node).axis);
  const std::int64_t size = node.results[0].shape[static_cast<int>(axis)],
                     window = info_.graph->type(node.inputs[1]).shape[static_cast<int>(axis)];
  const Index start = checked_index(id.node, node.inputs[2], {}, size - window + 1);
  if (info_.window == id) {
    window_start_ = number(start);
    return value(node.inputs[1], at);
  }
  Indices source = at;
  source[axis] = at[axis] + start * -1;
  const Var old = value(node.inputs[0], at);
  if (window == 0) return old;
  const Var inside = within(source[axis], 0, window);
  const Var fresh = under(inside, [&] { return value(node.inputs[1], source); });
  return inside.valid() ? b_.select(inside, fresh, old) : fresh;
}

Var Emitter::random_bits(ValueId id, const ir::Node& node, const Indices& at) {
  const Var seed = value(node.inputs[0], {}), draw = value(node.inputs[1], {});
  if (trace_) trace_->cost += scalar_op_cost(*node.op);
  return emit_random_bits(b_, seed, draw,
                          node_number(id.node, ir::attributes<op::RandomBits>(node).stream),
                          number(flatten(at, node.results[0].shape.strides())));
}

}  // namespace pantala::schedule
