#include "ir/graph_data.h"

#include <fmt/format.h>

#include "base/hash.h"
#include "base/text.h"
#include "ir/face.h"
#include "pantala/error.h"

namespace pantala::ir {

Provenance provenance(const Where& where) {
  return {base_name(where.file_name()), where.line(), {}};
}

std::string message_prefix(std::string_view op, const Provenance& where) {
  std::string text(op);
  if (!where.label.empty()) text += fmt::format(" \"{}\"", where.label);
  if (!where.file.empty()) text += fmt::format(" ({}:{})", where.file, where.line);
  return text + ": ";
}

void throw_type_error(std::string_view op, const Provenance& where, const std::string& message) {
  throw TypeError(message_prefix(op, where) + message);
}

void throw_other_attributes(const Node& node) {
  throw InternalError(
      fmt::format("the attributes of a {} were asked for as those of another op", node.op->name));
}

bool same_node(const Node& a, const Node& b) {
  return a.op == b.op && a.inputs == b.inputs && a.attrs.size() == b.attrs.size() &&
         std::equal(a.attrs.begin(), a.attrs.end(), b.attrs.begin(), equal_bits);
}

std::uint64_t hash_node(const Node& node) {
  std::uint64_t hash = fnv1a(node.op->name);
  for (const AttrValue& value : node.attrs) hash = hash_combine(hash, hash_of(value));
  for (const ValueId& id : node.inputs)
    hash = hash_combine(hash, (std::uint64_t{id.node} << 16) + id.result);
  return hash;
}

std::shared_ptr<GraphData> GraphData::clone() const {
  auto copy = std::make_shared<GraphData>();
  copy->outputs_ = outputs_;
  copy->updates_ = updates_;
  copy->nodes_ = nodes_;
  copy->index_ = index_;
  copy->leaves_ = leaves_;
  copy->leaf_names_ = leaf_names_;
  copy->streams_ = streams_;
  return copy;
}

Provenance GraphData::effective(const Provenance& where) const {
  Provenance result = where;
  if (scopes_.empty()) return result;
  // The outermost scope with a place is the one that the user wrote; the innermost label is the
  // most telling.
  for (auto scope = scopes_.begin(); scope != scopes_.end(); ++scope) {
    if (scope->file.empty()) continue;
    result.file = scope->file;
    result.line = scope->line;
    break;
  }
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    if (scope->label.empty()) continue;
    result.label = scope->label;
    break;
  }
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend() && !result.rewrites; ++scope)
    result.rewrites = scope->rewrites;
  return result;
}

namespace {
void check_arity(const OpDef& op, std::size_t given, const Provenance& where) {
  const auto count = static_cast<int>(given);
  const int least = op.min_inputs();
  const std::optional<int> most = op.max_inputs();
  if (count >= least && (!most || count <= *most)) return;
  const std::string inputs = counted(static_cast<std::size_t>(most.value_or(least)), "input");
  const std::string expected = !most            ? fmt::format("at least {}", inputs)
                               : least == *most ? inputs
                                                : fmt::format("{} to {}", least, inputs);
  throw_type_error(op.name, where,
                   fmt::format("takes {} {}, got {}", expected, op.signature, count));
}
}  // namespace

std::vector<Tensor> GraphData::append(const OpDef& op, std::span<const Tensor> inputs,
                                      AttrValues attrs, const Provenance& given) {
  const Provenance where = effective(given);
  check_arity(op, inputs.size(), where);
  std::vector<Type> types;
  for (const Tensor& t : inputs) {
    if (t.graph().get() != this)
      throw_type_error(op.name, where, "the inputs belong to different graphs");
    types.push_back(t.type());
  }
  InferContext context(op, types, std::move(attrs));
  try {
    op.infer(context);
  } catch (const TypeError& error) { throw_type_error(op.name, where, error.what()); }
  if (op.sugar) {
    Scope scope(*this, where);
    std::vector<Tensor> results = op.expand(ExpandContext(inputs), context.attrs());
    for (std::size_t k = 0; k < context.results().size(); ++k)
      if (k >= results.size() || results[k].type() != context.results()[k])
        throw InternalError(fmt::format(
            "{}: the expansion gives {} where the shape rule says {}", op.name,
            k < results.size() ? results[k].type().str() : "nothing", context.results()[k].str()));
    return results;
  }
  Node node{&op, std::move(context.attrs()), {}, std::move(context.results()), where};
  for (const Tensor& t : inputs) node.inputs.push_back(t.id());
  const std::uint32_t id = intern(std::move(node));
  std::vector<Tensor> results;
  for (std::uint32_t k = 0; k < nodes_[id].results.size(); ++k) results.push_back(tensor({id, k}));
  return results;
}

std::uint32_t GraphData::intern(Node node) {
  const std::uint64_t hash = hash_node(node);
  if (!node.op->leaf) {
    const auto [first, last] = index_.equal_range(hash);
    for (auto it = first; it != last; ++it)
      if (same_node(nodes_[it->second], node)) return it->second;
  }
  const auto id = static_cast<std::uint32_t>(nodes_.size());
  if (node.op->leaf) {
    const std::string& name = ir::leaf_name(node);
    if (!leaf_names_.emplace(name, id).second) {
      const Node& first = nodes_[leaf_names_.at(name)];
      throw_type_error(node.op->name, node.where,
                       fmt::format("the name '{}' is used twice, first by {} ({}:{})", name,
                                   first.op->name, first.where.file, first.where.line));
    }
    leaves_.push_back(id);
  }
  if (const std::optional<std::size_t> stream = node.op->find_attr("stream"))
    reserve_stream(std::get<std::int64_t>(node.attrs[*stream]));
  nodes_.push_back(std::move(node));
  index_.emplace(hash, id);
  return id;
}

std::optional<std::uint32_t> GraphData::find_leaf(std::string_view name) const {
  const auto it = leaf_names_.find(name);
  return it == leaf_names_.end() ? std::nullopt : std::optional(it->second);
}

const std::string& GraphData::leaf_name(std::uint32_t node) const {
  return ir::leaf_name(nodes_[node]);
}

Tensor GradContext::dy(int i) const {
  if (has_dy(i)) return upstream_[static_cast<std::size_t>(i)];
  GraphData& graph = *out(i).graph();
  const Type& type = out(i).type();
  return graph.append(constant_op(), {}, {0.0, type.dtype, type.shape.vec()}, {})[0];
}

}  // namespace pantala::ir
