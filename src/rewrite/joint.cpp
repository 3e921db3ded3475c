#include "rewrite/joint.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/hash.h"
#include "ir/leaves.h"
#include "ir/shared_graph.h"
#include "ops/face.h"
#include "ops/host_scalars.h"
#include "ops/slicing.h"
#include "pantala/error.h"

namespace pantala::rewrite {

using egraph::EGraph;
using egraph::SymbolId;

Joint::Joint(const Graph& graph)
    : graph_(ir::shared(graph)),
      equal_({.proofs = true, .analysis = this}),
      projection_(equal_.symbols().op("result")) {
  const std::vector<bool> host = ops::host_scalars(*graph_.data());
  for (const ir::Node& node : std::as_const(graph_).data()->nodes()) {
    std::vector<ClassId> inputs;
    for (const ValueId input : node.inputs) inputs.push_back(class_of(input));
    values_.push_back(add_node(node, inputs, host[values_.size()]));
  }
  for (std::size_t k = 0; k < equal_.node_ids(); ++k) given_nodes_.push_back(NodeId(k));
  equal_.rebuild();
}

ClassId Joint::class_of(ValueId value) const {
  const ir::Node& node = std::as_const(graph_).data()->node(value.node);
  const ClassId tuple = values_[value.node];
  if (node.results.size() == 1) return tuple;
  const auto symbol = equal_.symbols().find(projection_, 1, value.result);
  const auto found = symbol ? equal_.lookup(*symbol, {&tuple, 1}) : std::nullopt;
  if (!found) throw InternalError("rewrite: a result of a node is not in the e-graph");
  return *found;
}

// The number of an op with its attributes; payloads compare by it.
std::uint64_t Joint::intern(const ir::Node& node) {
  std::uint64_t hash = fnv1a(node.op->name);
  for (const ir::AttrValue& value : node.attrs) hash = hash_combine(hash, ir::hash_of(value));
  const auto [first, last] = content_index_.equal_range(hash);
  for (auto at = first; at != last; ++at) {
    const Content& known = contents_[at->second];
    if (known.op == node.op && std::equal(known.attrs.begin(), known.attrs.end(),
                                          node.attrs.begin(), node.attrs.end(), ir::equal_bits))
      return at->second;
  }
  contents_.push_back({node.op, node.attrs});
  content_index_.emplace(hash, contents_.size() - 1);
  return contents_.size() - 1;
}

// Of a node that a rule makes, by what is known about its operands.
bool Joint::is_host_scalar(const ir::Node& node, const std::vector<ClassId>& inputs) const {
  if (node.results.size() != 1 || node.results[0].shape.rank() != 0) return false;
  const auto is_host_input = [&](ClassId id) { return is_host(id); };
  return std::ranges::any_of(inputs, is_host_input) &&
         std::ranges::all_of(inputs, [&](ClassId id) { return is_host(id) || splat(id); }) &&
         ops::host_function(node);
}

// Constants of one number, and what only moves them.
std::optional<double> Joint::splat_of(const ir::Node& node,
                                      const std::vector<ClassId>& inputs) const {
  if (ops::is<op::BroadcastTo, op::Reshape, op::Permute, op::Slice>(node)) return splat(inputs[0]);
  if (!ops::is<op::Data>(node)) return ir::splat_value(node);
  const Literal& values = *ir::attributes<op::Data>(node).values;
  // Not all integers are doubles: from here on some are rounded to their neighbours.
  constexpr double kFirstRounded = 0x1p53;
  if (values.numel() == 0 || (!values.is_float() && std::abs(values.at(0)) >= kFirstRounded))
    return std::nullopt;
  const auto first = std::bit_cast<std::uint64_t>(values.at(0));
  for (std::int64_t k = 1; k < values.numel(); ++k)
    if (std::bit_cast<std::uint64_t>(values.at(k)) != first) return std::nullopt;
  return values.at(0);
}

ClassId Joint::add_node(const ir::Node& node, const std::vector<ClassId>& inputs, bool is_host) {
  EGraph& e = equal_;
  const SymbolId symbol = e.symbols().intern(
      e.symbols().op(node.op->name), static_cast<std::uint32_t>(inputs.size()), intern(node));
  const ClassId made =
      insert(symbol, inputs, {node.results, splat_of(node, inputs), is_host, node.where});
  if (node.results.size() > 1)
    for (std::uint32_t k = 0; k < node.results.size(); ++k) project(made, k, node.where);
  return made;
}

ClassId Joint::project(ClassId tuple, std::uint32_t result, const ir::Provenance& where) {
  const SymbolId symbol = equal_.symbols().intern(projection_, 1, result);
  return insert(symbol, {tuple}, {{types(tuple).at(result)}, std::nullopt, false, where});
}

ClassId Joint::insert(SymbolId symbol, const std::vector<ClassId>& inputs, Facts facts) {
  pending_ = std::move(facts);
  return equal_.add(symbol, inputs, reason_);
}

void Joint::make(const EGraph& graph, ClassId made, NodeId node) {
  types_.resize(graph.class_ids());
  splats_.resize(graph.class_ids());
  hosts_.resize(graph.class_ids());
  wheres_.resize(node.index() + 1);
  places_.resize(node.index() + 1);
  types_[made.index()] = pending_.types;
  splats_[made.index()] = pending_.splat;
  hosts_[made.index()] = pending_.is_host;
  wheres_[node.index()] = pending_.where;
  places_[node.index()] = reason_.at.valid() ? places_[reason_.at.index()] : values_.size();
}

bool Joint::join(const EGraph&, ClassId, NodeId) { return false; }

egraph::Analysis::Merged Joint::merge(const EGraph& graph, ClassId into, ClassId from) {
  if (types_[into.index()] != types_[from.index()])
    throw InternalError(fmt::format("rewrite: {} and {} were said to be equal",
                                    types_[into.index()].at(0).str(),
                                    types_[from.index()].at(0).str()));
  static_cast<void>(graph);
  if (!splats_[into.index()]) splats_[into.index()] = splats_[from.index()];
  hosts_[into.index()] = hosts_[into.index()] || hosts_[from.index()];
  return {};
}

const ir::OpDef* Joint::op(NodeId node) const {
  return is_projection(node) ? nullptr
                             : contents_[equal_.symbols()[equal_.symbol(node)].payload].op;
}

const ir::AttrValues& Joint::attrs(NodeId node) const {
  return contents_[equal_.symbols()[equal_.symbol(node)].payload].attrs;
}

bool Joint::is_projection(NodeId node) const { return equal_.op(node) == projection_; }

std::uint32_t Joint::projected_result(NodeId node) const {
  return static_cast<std::uint32_t>(equal_.symbols()[equal_.symbol(node)].payload);
}

Tensor Joint::tensor(ClassId id) {
  const std::size_t name = equal_.find(id).index();
  if (const auto known = leaves_.find(name); known != leaves_.end()) return known->second;
  // A constant is one here too, so that what is built from it is what the library builds.
  Tensor leaf = splats_[name] ? side_.constant(*splats_[name], types_[name].at(0).shape,
                                               types_[name].at(0).dtype)
                              : side_.input(fmt::format("class{}", name), types_[name].at(0).shape,
                                            types_[name].at(0).dtype);
  side_classes_.resize(side_.size());
  side_classes_[leaf.id().node] = ClassId(name);
  leaves_.emplace(name, leaf);
  return leaf;
}

std::string Joint::describe(NodeId node) const {
  const ir::Provenance& at = where(node);
  const std::string place = at.file.empty() ? "" : fmt::format(" ({}:{})", at.file, at.line);
  return fmt::format("{} {}{}", is_projection(node) ? "result" : op(node)->name,
                     type(equal_.class_of(node)).str(), place);
}

void Joint::speak_for(const egraph::Reason& reason, const std::string& rule) {
  reason_ = reason;
  if (rule_names_.size() <= reason.rule.index()) rule_names_.resize(reason.rule.index() + 1);
  rule_names_[reason.rule.index()] = rule;
  made_by_ = where(reason.at);
  std::vector<ir::Rewriting> rewrites;
  if (made_by_.rewrites) rewrites = *made_by_.rewrites;
  rewrites.push_back({rule, describe(reason.at)});
  made_by_.rewrites = std::make_shared<const std::vector<ir::Rewriting>>(std::move(rewrites));
}

ClassId Joint::add(const Tensor& value) {
  const ir::GraphData& side = *std::as_const(side_).data();
  side_classes_.resize(side.nodes().size());
  std::vector<std::uint32_t> work = {value.id().node};
  while (!work.empty()) {
    const std::uint32_t id = work.back();
    const ir::Node& node = side.node(id);
    const std::size_t waiting = work.size();
    if (!side_classes_[id].valid())
      for (const ValueId input : node.inputs)
        if (!side_classes_[input.node].valid()) work.push_back(input.node);
    if (work.size() > waiting) continue;
    work.pop_back();
    if (side_classes_[id].valid()) continue;
    std::vector<ClassId> inputs;
    for (const ValueId input : node.inputs) {
      const ClassId tuple = side_classes_[input.node];
      const bool many = side.node(input.node).results.size() > 1;
      inputs.push_back(many ? project(tuple, input.result, {}) : tuple);
    }
    ir::Node placed = node;
    if (reason_.at.valid()) placed.where = made_by_;
    side_classes_[id] = add_node(placed, inputs, is_host_scalar(placed, inputs));
  }
  const ClassId made = side_classes_[value.id().node];
  return side.node(value.id().node).results.size() > 1 ? project(made, value.id().result, {})
                                                       : made;
}

}  // namespace pantala::rewrite
