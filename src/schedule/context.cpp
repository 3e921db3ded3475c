#include "schedule/context.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "ir/bytes.h"
#include "ir/leaves.h"
#include "ir/shared_graph.h"
#include "ops/arithmetic.h"
#include "ops/face.h"
#include "ops/host_scalars.h"
#include "ops/slicing.h"
#include "pantala/error.h"
#include "schedule/archetype.h"

namespace pantala::schedule {

namespace {

std::vector<int> row_major(int rank) {
  std::vector<int> order(static_cast<std::size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

std::vector<std::int64_t> strides_in(const Shape& shape, const std::vector<int>& order) {
  std::vector<std::int64_t> result(order.size());
  std::int64_t stride = 1;
  for (std::size_t k = order.size(); k-- > 0;) {
    result[static_cast<std::size_t>(order[k])] = stride;
    stride *= shape[order[k]];
  }
  return result;
}

// Ops that may stand between an index tensor and its reader without changing which numbers occur.
// What chooses some of the elements (slices, take) is none: the others may be any numbers.
bool keeps_numbers(const ir::Node& node) {
  if (ops::is<op::Cast>(node)) {
    const DType to = node.results[0].dtype;
    return to == DType::i32 || to == DType::i64;
  }
  return is_movement(*node.op) && !ops::is<op::Slice>(node);
}

}  // namespace

Context::Context(const Graph& lowered, const Machine& machine, const ScheduleOptions& with)
    : Context(Decisions{.graph = std::make_shared<const Graph>(ir::shared(lowered))}, machine,
              with) {
  decisions_.host = ops::host_scalars(*graph_);
  add_leaves();
  choose_orders();
}

Context::Context(Decisions decisions, const Machine& machine, const ScheduleOptions& with)
    : archetypes(machine.archetypes),
      target(machine.target),
      options(with),
      decisions_(std::move(decisions)),
      graph_(decisions_.graph->data().get()) {
  info_.graph = graph_;
  info_.emitted = &decisions_.emitted;
  info_.is_stored = [this](ValueId id) { return is_stored(id); };
  info_.is_host = [this](ValueId id) { return is_host(id); };
  info_.strides = [this](ValueId id) {
    const auto it = decisions_.places.find(id);
    return it != decisions_.places.end() ? strides(it->second) : strides_of(id);
  };
  info_.in_range = [this](ValueId index, std::int64_t limit) { return in_range(index, limit); };
  info_.report_code = [this](std::uint32_t id, std::int64_t limit) {
    return report_code(id, limit);
  };
}

void Context::add_leaves() {
  for (std::uint32_t id = 0; id < graph_->nodes().size(); ++id) {
    const ir::Node& n = graph_->node(id);
    if (!is_leaf(*n.op) || is_host({id, 0}) || ir::splat_value(n)) continue;
    ProgramBuffer buffer;
    buffer.dtype = n.results[0].dtype;
    buffer.shape = n.results[0].shape;
    if (const auto kind = ir::leaf_kind(*n.op)) {
      buffer.name = graph_->leaf_name(id);
      buffer.role = kind == LeafKind::input ? Role::input : Role::store;
    } else {
      buffer.name = fmt::format("constant{}", id);
      buffer.role = Role::constant;
      const ir::LiteralPtr values = ir::attributes<op::Data>(n).values;
      const Literal& literal = *values;
      buffer.content.resize(
          static_cast<std::size_t>(literal.numel() * dtype_bytes(literal.dtype())));
      ir::to_bytes(literal, buffer.content);
    }
    store({id, 0}, add_buffer(std::move(buffer)));
  }
}

// What readers want is known before any of them is asked how it reads.
void Context::choose_orders() {
  std::map<ValueId, std::vector<const ir::Node*>> readers;
  std::set<ValueId> results;
  for (const ir::Node& n : graph_->nodes())
    for (const ValueId input : n.inputs)
      if (const Archetype* maker = archetypes.find(*node(input.node).op);
          maker != nullptr && maker->order_for != nullptr)
        readers[input].push_back(&n);
  for (const auto& [name, value] : graph_->outputs()) results.insert(value);
  for (const auto& [leaf, value] : graph_->updates()) results.insert(value);
  for (const auto& [value, list] : readers) {
    const ir::Node& made = node(value.node);
    if (results.contains(value)) continue;
    std::vector<int> order = archetypes.find(*made.op)->order_for(made, value.result, list);
    if (!order.empty()) orders_.emplace(value, std::move(order));
  }
}

const std::vector<int>& Context::order_of(ValueId id) const {
  static const std::vector<int> none;
  const auto found = orders_.find(id);
  return found == orders_.end() ? none : found->second;
}

std::uint32_t Context::add_buffer(ProgramBuffer buffer) {
  if (buffer.order.empty()) buffer.order = row_major(buffer.shape.rank());
  decisions_.buffers.push_back(std::move(buffer));
  return static_cast<std::uint32_t>(decisions_.buffers.size() - 1);
}

std::uint32_t Context::add_temporary(ValueId id, std::vector<int> order) {
  ProgramBuffer buffer;
  buffer.name = fmt::format("{}.{}{}", node(id.node).op->name, id.node,
                            id.result == 0 ? "" : fmt::format(".{}", id.result));
  buffer.dtype = type(id).dtype;
  buffer.shape = type(id).shape;
  buffer.order = std::move(order);
  return add_buffer(std::move(buffer));
}

std::vector<std::int64_t> Context::strides(std::uint32_t id) const {
  const ProgramBuffer& b = decisions_.buffers[id];
  return strides_in(b.shape, b.order);
}

// Of a value whose buffer is not decided.
std::vector<std::int64_t> Context::strides_of(ValueId id) const {
  const std::vector<int>& order = order_of(id);
  return order.empty() ? type(id).shape.strides() : strides_in(type(id).shape, order);
}

// The value whose numbers `id` has, in other places or as another integer type.
ValueId Context::numbers_of(ValueId id) const {
  for (const ir::Node* n = &graph_->node(id.node); !is_leaf(*n->op) && keeps_numbers(*n);
       n = &graph_->node(id.node))
    id = n->inputs[0];
  return id;
}

// where(x == c, k, x) with k in range has the numbers of x, of which c may be any: rows to ignore.
std::optional<Context::Replaced> Context::replaced_number(ValueId id, std::int64_t limit) const {
  const ir::Node& choice = node(id.node);
  if (!ops::is<op::Where>(choice)) return std::nullopt;
  const ir::Node& condition = node(choice.inputs[0].node);
  if (!ops::is<op::Eq>(condition) || condition.inputs[0] != choice.inputs[2]) return std::nullopt;
  const auto constant = [&](ValueId value) {
    return ir::splat_value(node(numbers_of(value).node));
  };
  const std::optional<double> number = constant(condition.inputs[1]);
  const std::optional<double> instead = constant(choice.inputs[1]);
  if (!number || !instead || *instead < 0 || *instead >= static_cast<double>(limit))
    return std::nullopt;
  return Replaced{choice.inputs[2], static_cast<std::int64_t>(*number)};
}

// Whether all numbers of a constant lie in [0, limit).
bool Context::constant_in_range(std::uint32_t id, std::int64_t limit) {
  if (const std::optional<double> splat = ir::splat_value(node(id)))
    return *splat >= 0 && *splat < static_cast<double>(limit);
  if (node(id).op != &ir::data_op() || !is_integer(node(id).results[0].dtype)) return false;
  auto known = constant_numbers_.find(id);
  if (known == constant_numbers_.end()) {
    const ir::LiteralPtr values = ir::attributes<op::Data>(node(id)).values;
    const std::span<const std::int64_t> numbers = values->i();
    const auto [low, high] = std::minmax_element(numbers.begin(), numbers.end());
    known = constant_numbers_.emplace(id, numbers.empty() ? Interval{0, -1} : Interval{*low, *high})
                .first;
  }
  return known->second.low >= 0 && known->second.high < limit;
}

// Inputs are checked when they are set: their limit is noted. What the graph makes itself is
// checked by the kernels, unless it is known.
bool Context::in_range(ValueId index, std::int64_t limit) {
  ++index_checks_;
  if (is_host(index)) return false;
  index = numbers_of(index);
  std::optional<std::int64_t> exempt;
  if (const std::optional<Replaced> replaced = replaced_number(index, limit)) {
    index = numbers_of(replaced->value);
    exempt = replaced->number;
  }
  if (constant_in_range(index.node, limit)) return true;
  if (ir::leaf_kind(*node(index.node).op) != LeafKind::input || !is_integer(type(index).dtype))
    return false;
  ProgramBuffer& b = decisions_.buffers[buffer_of(index)];
  // A number that one reader replaces may be out of range for another.
  if (b.exempt && b.exempt != exempt && (*b.exempt < 0 || *b.exempt >= limit)) return false;
  if (b.limit == 0) b.exempt = exempt;
  b.limit = b.limit == 0 ? limit : std::min(b.limit, limit);
  return true;
}

std::int64_t Context::report_code(std::uint32_t id, std::int64_t limit) {
  ++index_checks_;
  const ir::Node& n = node(id);
  const std::string text = fmt::format("{}an index is out of range [0, {})",
                                       ir::message_prefix(n.op->name, n.where), limit);
  for (const StatusMessage& message : decisions_.messages)
    if (message.text == text) return message.code;
  const auto code = static_cast<std::int64_t>(decisions_.messages.size() + 1);
  decisions_.messages.push_back({code, text});
  return code;
}

}  // namespace pantala::schedule
