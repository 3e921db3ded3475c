#include "plan/host_part.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "ir/leaves.h"
#include "ir/rewriter.h"
#include "ops/host_scalars.h"
#include "pantala/error.h"
#include "pantala/text.h"
#include "plan/plan.h"

namespace pantala::plan {

using ir::Number;
using ops::to_dtype;

namespace {

constexpr std::string_view kUniform = "uniform.", kOutput = "output.";

// The first value of a constant node, if it is one.
std::optional<Number> constant_of(const ir::Node& node) {
  const DType dtype = node.results[0].dtype;
  if (node.op == &ir::constant_op()) return to_dtype(*ir::splat_value(node), dtype);
  if (node.op != &ir::data_op()) return std::nullopt;
  const ir::LiteralPtr values = ir::attributes<op::Data>(node).values;
  const Literal& literal = *values;
  return literal.is_float() ? Number(literal.f()[0]) : Number::of(literal.i()[0]);
}

std::int64_t slot(const Number& value, DType dtype) {
  switch (dtype) {
    case DType::f32:
      return slot_of(static_cast<float>(value.real()));
    case DType::f64:
      return slot_of(value.real());
    case DType::i32:
      return slot_of(static_cast<std::int32_t>(to_dtype(value, dtype).i));
    default:
      return slot_of(to_dtype(value, dtype).i);
  }
}

// "uniform.3.f32": the number and the dtype.
struct UniformName {
  std::size_t number = 0;
  DType dtype = DType::f64;
};
std::optional<UniformName> parse_uniform(std::string_view name) {
  if (!name.starts_with(kUniform)) return std::nullopt;
  name.remove_prefix(kUniform.size());
  UniformName uniform;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), uniform.number);
  const std::string_view rest(end, static_cast<std::size_t>(name.data() + name.size() - end));
  const std::optional<DType> dtype = parse_dtype(rest.empty() ? rest : rest.substr(1));
  if (error != std::errc() || !rest.starts_with('.') || !dtype) return std::nullopt;
  uniform.dtype = *dtype;
  return uniform;
}

[[noreturn]] void fail(const std::string& what) { throw InternalError("host part: " + what); }

}  // namespace

HostPart::HostPart(const Graph& graph, const HostRequest& request) {
  std::vector<ValueId> wanted;
  for (const auto& [value, dtype] : request.uniforms) wanted.push_back(value);
  for (const auto& [name, value] : request.outputs) wanted.push_back(value);
  for (const auto& [name, value] : request.updates) {
    wanted.push_back(value);
    wanted.push_back(graph.leaf(name).id());
  }
  ir::Rewriter extraction(*graph.data(), graph_.data());
  extraction.copy(wanted);
  for (std::size_t k = 0; k < request.uniforms.size(); ++k) {
    const auto& [value, dtype] = request.uniforms[k];
    graph_.output(fmt::format("{}{}.{}", kUniform, k, dtype_name(dtype)), extraction.at(value));
  }
  for (const auto& [name, value] : request.outputs)
    graph_.output(fmt::format("{}{}", kOutput, name), extraction.at(value));
  for (const auto& [name, value] : request.updates)
    graph_.update(extraction.at(graph.leaf(name).id()), extraction.at(value));
  build();
}

HostPart HostPart::parse(std::string_view text, std::string_view file) {
  HostPart part;
  try {
    part.graph_ = parse_graph(text, file);
    part.build();
  } catch (const ParseError&) { throw; } catch (const Error& error) {
    throw ParseError(fmt::format("{}: not a host part: {}", file, error.what()));
  }
  return part;
}

std::string HostPart::text() const { return to_text(graph_); }

void HostPart::build() {
  const ir::GraphData& data = *graph_.data();
  registers_.resize(data.nodes().size());
  for (std::uint32_t id = 0; id < data.nodes().size(); ++id) add_node(id);
  for (const auto& [name, value] : data.outputs()) {
    if (name.starts_with(kOutput)) {
      output_names_.push_back(name.substr(kOutput.size()));
      outputs_.emplace_back(value.node, data.type(value).dtype);
    } else if (const auto uniform = parse_uniform(name)) {
      if (uniform->number != uniforms_.size()) fail(fmt::format("'{}' is out of order", name));
      uniforms_.emplace_back(value.node, uniform->dtype);
    } else {
      fail(fmt::format("the output '{}' has no meaning", name));
    }
  }
  for (const auto& [leaf, value] : data.updates()) {
    const auto at = std::ranges::find(leaf_registers_, leaf) - leaf_registers_.begin();
    updates_.emplace_back(static_cast<std::uint32_t>(at), value.node);
  }
}

void HostPart::add_node(std::uint32_t id) {
  const ir::GraphData& data = *graph_.data();
  const ir::Node& node = data.node(id);
  if (node.results.size() != 1 || node.results[0].shape.rank() != 0)
    fail(fmt::format("{} is no scalar", node.op->name));
  if (const std::optional<LeafKind> kind = ir::leaf_kind(*node.op)) {
    if (*kind != LeafKind::scalar && *kind != LeafKind::state)
      fail(fmt::format("it depends on '{}', which lives on the device", data.leaf_name(id)));
    leaves_.push_back({*kind, data.leaf_name(id), node.results[0].dtype});
    leaf_registers_.push_back(id);
  } else if (const std::optional<Number> constant = constant_of(node)) {
    registers_[id] = *constant;
  } else {
    Step step{ops::host_function(node), {}, id, node.results[0].dtype};
    if (!step.function) fail(fmt::format("{} has no meaning for scalars", node.op->name));
    for (const ValueId& input : node.inputs) step.inputs.push_back(input.node);
    arguments_.resize(std::max(arguments_.size(), step.inputs.size()));
    steps_.push_back(std::move(step));
  }
}

void HostPart::evaluate(std::span<const Number> values, std::span<std::int64_t> slots) {
  if (values.size() != leaves_.size() || slots.size() != uniforms_.size())
    fail(fmt::format("{} values and {} slots for {} leaves and {} uniforms", values.size(),
                     slots.size(), leaves_.size(), uniforms_.size()));
  for (std::size_t k = 0; k < values.size(); ++k)
    registers_[leaf_registers_[k]] = to_dtype(values[k], leaves_[k].dtype);
  for (const Step& step : steps_) {
    for (std::size_t k = 0; k < step.inputs.size(); ++k) arguments_[k] = registers_[step.inputs[k]];
    registers_[step.result] = to_dtype(step.function(arguments_.data()), step.dtype);
  }
  for (std::size_t k = 0; k < slots.size(); ++k)
    slots[k] = slot(registers_[uniforms_[k].first], uniforms_[k].second);
}

Number HostPart::output(std::size_t index) const {
  const auto [slot, dtype] = outputs_.at(index);
  const Number number = registers_[slot];
  return number.integral ? number : Number(round_to(dtype, number.f));
}

std::vector<std::size_t> HostPart::updated_leaves() const {
  std::vector<std::size_t> leaves;
  for (const auto& [leaf, value] : updates_) leaves.push_back(leaf);
  return leaves;
}

void HostPart::advance(std::span<Number> values) const {
  if (values.size() != leaves_.size())
    fail(fmt::format("{} values for {} leaves", values.size(), leaves_.size()));
  for (const auto& [leaf, value] : updates_) values[leaf] = registers_[value];
}

}  // namespace pantala::plan
