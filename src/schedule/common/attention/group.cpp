#include "schedule/common/attention/group.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "ops/attention.h"
#include "ops/face.h"
#include "ops/movement.h"
#include "pantala/error.h"
#include "schedule/append.h"

namespace pantala::schedule {

namespace {

// Sizes from q at `first` and k behind it.
AttentionSizes sizes_of(const Context& context, const ir::Node& node, std::size_t first) {
  const Shape &q = context.type(node.inputs[first]).shape,
              &k = context.type(node.inputs[first + 1]).shape;
  return {q[0], q[1], k[1], q[2], k[2], q[3]};
}

// Operands [batch, heads, positions, head_dim]; the others are sums of rows, masks and lengths.
bool is_head_operand(const ir::Node& node, std::size_t operand) {
  return operand < (ops::is<op::AttentionGrad>(node) ? 5U : 3U);
}

// Such an operand where it lies: what it is moved from is read in place, as long as the elements of
// a head are neighbours.
struct HeadOperand {
  ValueId source;
  HeadStrides strides;
};
std::optional<HeadOperand> head_operand(const Context& context, ValueId operand,
                                        const IsStored& is_stored) {
  ValueId source = operand;
  while (!is_stored(source)) {
    const ir::Node& mover = context.node(source.node);
    if (!is_movement(*mover.op)) return std::nullopt;
    source = mover.inputs[0];
  }
  ValueInfo info = context.info();
  info.is_stored = is_stored;
  const Shape& shape = context.type(operand).shape;
  const Footprint reads = trace(info, {shape.vec()}, {operand}, loop_indices(shape.rank()));
  if (reads.accesses.size() != 1 || !reads.accesses[0].offset_strides.empty()) return std::nullopt;
  const Affine& flat = reads.accesses[0].flat;
  const HeadStrides strides{flat.coef[0], flat.coef[1], flat.coef[2], flat.constant};
  if (strides.offset < 0 || strides.batch < 0 || strides.head < 0 || strides.position < 0 ||
      (flat.coef[3] != 1 && shape[3] != 1))
    return std::nullopt;
  return HeadOperand{source, strides};
}

// What lies in memory of an operand; nothing for a number of the host.
std::optional<ValueId> source_of(const Context& context, const ir::Node& node, std::size_t operand,
                                 const IsStored& is_stored) {
  const ValueId input = node.inputs[operand];
  if (is_stored(input)) return input;
  if (!is_head_operand(node, operand)) return std::nullopt;
  const auto found = head_operand(context, input, is_stored);
  return found ? std::optional(found->source) : std::nullopt;
}

// Whether a part reads an operand of the node: only the dots need what came out, and little else.
bool reads(AttentionPart part, const ir::Node& node, std::size_t operand) {
  constexpr std::size_t kGradient = 0, kOut = 4;
  if (!ops::is<op::AttentionGrad>(node) || operand == kGradient) return true;
  return (operand == kOut) == (part == AttentionPart::row_dots);
}
bool writes(AttentionPart part, const ir::Node& node, std::uint32_t result) {
  constexpr std::uint32_t kQuery = 0;
  if (!ops::is<op::AttentionGrad>(node) || part == AttentionPart::all_grads) return true;
  return part == (result == kQuery ? AttentionPart::query_grad : AttentionPart::key_grad);
}

class Attention {
 public:
  Attention(Building& building, const Group& group, const AttentionDevice& device)
      : building_(building),
        device_(device),
        context_(building.context()),
        id_(group.anchors[0]),
        node_(context_.node(id_)),
        outputs_(group.outputs) {
    spec_.dtype = node_.results[0].dtype;
    const auto attrs = ir::attributes<op::AttentionAttrs>(node_);
    spec_.causal = attrs.causal;
    window_ = attrs.window;
    scale_ = attrs.scale;
    spec_.windowed = spec_.causal && window_ > 0;
  }

  std::vector<KernelDraft> forward() {
    describe(0);
    strides_.q = strides_of_input(0);
    strides_.k = strides_of_input(1);
    strides_.v = strides_of_input(2);
    const std::uint32_t out = result(0);
    strides_.out = head_strides(out);
    std::vector<std::uint32_t> buffers{input(0), input(1), input(2)};
    std::optional<ValueId> length;
    if (ops::is<op::AttentionCached>(node_)) {
      const ValueId value = node_.inputs[3];
      spec_.save_lse = false;
      spec_.length = context_.is_host(value) ? AttentionLength::param : AttentionLength::buffer;
      if (spec_.length == AttentionLength::buffer) buffers.push_back(context_.buffer_of(value));
      if (spec_.length == AttentionLength::param) length = value;
    } else {
      add_mask(3, buffers);
      spec_.save_lse = wanted(1);
    }
    buffers.push_back(out);
    if (spec_.save_lse) buffers.push_back(result(1));
    return {launch(AttentionPart::forward, std::move(buffers), length)};
  }

  std::vector<KernelDraft> gradients() {
    describe(1);
    strides_.dout = strides_of_input(0);
    strides_.q = strides_of_input(1);
    strides_.k = strides_of_input(2);
    strides_.v = strides_of_input(3);
    strides_.out = strides_of_input(4);
    const std::uint32_t dots = building_.add_scratch_tensor(
        fmt::format("dots.{}", id_), spec_.dtype, context_.type(node_.inputs[5]).shape);
    std::vector<std::uint32_t> reads{input(0), input(1), input(2), input(3), input(5), dots};
    add_mask(6, reads);
    const std::uint32_t dq = result(0), dk = result(1), dv = result(2);
    strides_.dq = head_strides(dq);
    strides_.dk = head_strides(dk);
    strides_.dv = head_strides(dv);
    const auto with = [&](std::initializer_list<std::uint32_t> writes) {
      std::vector<std::uint32_t> all = reads;
      all.insert(all.end(), writes);
      return all;
    };
    std::vector<KernelDraft> drafts;
    for (const AttentionPart part : device_.grad_parts(context_, sizes_)) {
      switch (part) {
        case AttentionPart::row_dots:
          drafts.push_back(launch(part, {input(0), input(4), dots}));
          break;
        case AttentionPart::query_grad:
          drafts.push_back(launch(part, with({dq})));
          break;
        case AttentionPart::key_grad:
          drafts.push_back(launch(part, with({dk, dv})));
          break;
        default:
          drafts.push_back(launch(part, with({dq, dk, dv})));
      }
    }
    return drafts;
  }

 private:
  // Sizes and scale, from q at `first` and k behind it.
  void describe(std::size_t first) {
    const Shape& q = context_.type(node_.inputs[first]).shape;
    sizes_ = sizes_of(context_, node_, first);
    if (scale_ == 0) scale_ = 1 / std::sqrt(static_cast<double>(q[3]));
    strides_.row_head = q[2];
    strides_.row_batch = q[1] * q[2];
  }

  std::uint32_t input(std::size_t k) const {
    return context_.buffer_of(is_head_operand(node_, k) ? operand(k).source : node_.inputs[k]);
  }
  HeadOperand operand(std::size_t k) const {
    const auto found = head_operand(context_, node_.inputs[k],
                                    [&](ValueId value) { return context_.is_stored(value); });
    if (!found) throw InternalError("schedule: heads of an attention are not contiguous");
    return *found;
  }
  HeadStrides strides_of_input(std::size_t k) const { return operand(k).strides; }
  bool wanted(std::uint32_t r) const {
    for (const GroupOutput& output : outputs_)
      if (output.value == ValueId{id_, r}) return true;
    return false;
  }
  // The buffer of a result; one that nobody reads gets memory all the same.
  std::uint32_t result(std::uint32_t r) {
    for (const GroupOutput& output : outputs_)
      if (output.value == ValueId{id_, r}) return output.buffer;
    return building_.add_scratch_tensor(fmt::format("unused.{}.{}", id_, r), node_.results[r].dtype,
                                        node_.results[r].shape);
  }
  HeadStrides head_strides(std::uint32_t buffer) const {
    const std::vector<std::int64_t> s = context_.strides(buffer);
    if (s[3] != 1 && context_.buffer(buffer).shape[3] != 1)
      throw InternalError("schedule: heads of an attention are not contiguous");
    return {s[0], s[1], s[2]};
  }

  // The mask is broadcast, right-aligned, to [batch, heads, queries, keys].
  void add_mask(std::size_t k, std::vector<std::uint32_t>& buffers) {
    if (k >= node_.inputs.size()) return;
    const Type& type = context_.type(node_.inputs[k]);
    spec_.mask = type.dtype == DType::boolean ? AttentionMask::boolean : AttentionMask::additive;
    const std::vector<std::int64_t> own = context_.strides(input(k));
    std::array<std::int64_t, 4> strides{};
    for (int axis = 0; axis < type.shape.rank(); ++axis)
      if (type.shape[axis] != 1)
        strides[static_cast<std::size_t>(4 - type.shape.rank() + axis)] =
            own[static_cast<std::size_t>(axis)];
    strides_.mask_batch = strides[0];
    strides_.mask_head = strides[1];
    strides_.mask_query = strides[2];
    strides_.mask_key = strides[3];
    const auto along = [](std::int64_t stride) {
      return stride == 0   ? MaskAxis::broadcast
             : stride == 1 ? MaskAxis::contiguous
                           : MaskAxis::strided;
    };
    spec_.mask_queries = along(strides_.mask_query);
    spec_.mask_keys = along(strides_.mask_key);
    buffers.push_back(input(k));
  }

  KernelDraft launch(AttentionPart part, std::vector<std::uint32_t> buffers,
                     std::optional<ValueId> length = {}) {
    AttentionKernel made = device_.kernel(context_, part, spec_, sizes_);
    KernelDraft draft;
    draft.name = fmt::format("{}.{}", node_.op->name, id_);
    draft.kernel = std::move(made.kernel);
    draft.set.items = made.items;
    draft.set.buffers = std::move(buffers);
    for (const std::int64_t value :
         attention_params(part, spec_, sizes_, strides_, window_, made.block))
      draft.set.params.push_back(ParamValue::of(value));
    if (part != AttentionPart::row_dots) draft.set.params.push_back(ParamValue::of_real(scale_));
    if (length) draft.set.params.push_back(building_.uniform(*length, DType::i64));
    draft.flops = flops_of(part, sizes_);
    return draft;
  }

  Building& building_;
  const AttentionDevice& device_;
  const Context& context_;
  std::uint32_t id_;
  const ir::Node& node_;
  const std::vector<GroupOutput>& outputs_;
  AttentionSpec spec_;
  AttentionSizes sizes_;
  AttentionStrides strides_;
  std::int64_t window_ = 0;
  double scale_ = 1;
};

}  // namespace

AttentionSizes attention_sizes(const Context& context, const ir::Node& node) {
  return sizes_of(context, node, ops::is<op::AttentionGrad>(node) ? 1 : 0);
}

double flops_of(AttentionPart part, const AttentionSizes& sizes) {
  const double products = part == AttentionPart::forward    ? 2
                          : part == AttentionPart::row_dots ? 0
                                                            : 4;
  return 2 * products * static_cast<double>(sizes.batch * sizes.heads * sizes.head_dim) *
         static_cast<double>(sizes.queries) * static_cast<double>(sizes.keys);
}

std::vector<AttentionPart> attention_parts(const Context& context, const ir::Node& node,
                                           const AttentionDevice& device) {
  if (!ops::is<op::AttentionGrad>(node)) return {AttentionPart::forward};
  return device.grad_parts(context, sizes_of(context, node, 1));
}

Work work_of_attention(const Context& context, const Group& group, const AttentionDevice& device) {
  const ir::Node& node = context.node(group.anchors[0]);
  const AttentionSizes sizes = attention_sizes(context, node);
  const std::vector<AttentionPart> parts = attention_parts(context, node, device);
  Work work;
  for (std::size_t k = 0; k < parts.size(); ++k) {
    const int kernel = static_cast<int>(k);
    for (std::size_t operand = 0; operand < node.inputs.size(); ++operand) {
      const auto source = source_of(context, node, operand,
                                    [&](ValueId value) { return context.is_stored(value); });
      if (source && reads(parts[k], node, operand))
        add_whole(context, context.buffer_of(*source), false, 1, work, kernel);
    }
    for (const GroupOutput& output : group.outputs)
      if (writes(parts[k], node, output.value.result))
        add_whole(context, output.buffer, true, 1, work, kernel);
    work.flops += flops_of(parts[k], sizes);
  }
  return work;
}

std::vector<KernelDraft> build_attention_group(Building& building, const Group& group,
                                               const AttentionDevice& device) {
  Attention attention(building, group, device);
  return ops::is<op::AttentionGrad>(building.context().node(group.anchors[0]))
             ? attention.gradients()
             : attention.forward();
}

namespace {

// The length of a cache is an i64; a number of the host is a parameter.
std::vector<Tensor> append_attention(ir::GraphData& target, const ir::Node& node,
                                     std::vector<Tensor> inputs) {
  widen_halves(inputs);
  if (ops::is<op::AttentionCached>(node)) inputs[3] = converted(inputs[3], DType::i64);
  return append_converted(target, node, inputs, node.attrs);
}

bool attention_must_store(const Context& context, std::uint32_t node, std::size_t operand,
                          const IsStored& is_stored) {
  const ir::Node& n = context.node(node);
  return !context.is_host(n.inputs[operand]) && !source_of(context, n, operand, is_stored);
}

Reads reads_of_attention(const Context& context, const ValueInfo& info, std::uint32_t node) {
  const ir::Node& n = context.node(node);
  std::vector<ValueId> stored;
  for (std::size_t operand = 0; operand < n.inputs.size(); ++operand)
    if (const auto source = source_of(context, n, operand, info.is_stored))
      stored.push_back(*source);
  return reads_whole(n.results[0].shape, stored);
}

// As its readers permute it, if they agree and the elements of a head stay together: heads come
// after positions where they are joined next, so that a product can read them.
std::vector<int> attention_order_for(const ir::Node& node, std::uint32_t result,
                                     const std::vector<const ir::Node*>& readers) {
  if (node.results[result].shape.rank() != 4) return {};
  ir::Ints order;
  for (const ir::Node* reader : readers) {
    if (ops::is<op::AttentionGrad>(*reader)) continue;
    if (!ops::is<op::Permute>(*reader)) return {};
    const ir::Ints axes = ir::attributes<op::Permute>(*reader).axes;
    if (axes.back() != 3 || (!order.empty() && axes != order)) return {};
    order = axes;
  }
  return {order.begin(), order.end()};
}

}  // namespace

Archetype attention_row() {
  return {
      .name = "attention",
      .ops = {&ops::def<op::Attention>(), &ops::def<op::AttentionGrad>(),
              &ops::def<op::AttentionCached>()},
      .append = append_attention,
      .must_store = attention_must_store,
      .reads = reads_of_attention,
      .reads_moved = true,
      .stores_once = true,
      .order_for = attention_order_for,
      // The elements of a head are neighbours.
      .row_major = true,
  };
}

}  // namespace pantala::schedule
