#include "ir/rewriter.h"

#include <fmt/format.h>

#include "pantala/error.h"

namespace pantala::ir {

Rewriter::Rewriter(const GraphData& source, std::shared_ptr<GraphData> target, Rule rule)
    : source_(source), target_(std::move(target)), rule_(std::move(rule)) {
  if (&source_ == target_.get())
    throw InternalError("rewriter: a graph cannot be rewritten into itself");
  if (source_.streams() > 0) target_->reserve_stream(source_.streams() - 1);
  values_.reserve(source_.nodes().size());
  for (const Node& node : source_.nodes()) values_.emplace_back(node.results.size());
}

void Rewriter::set(ValueId old, const Tensor& value) { values_[old.node][old.result] = value; }

void Rewriter::copy(std::span<const ValueId> wanted) {
  std::vector<bool> needed(source_.nodes().size());
  const auto want = [&](ValueId id) {
    if (!is_known(id)) needed[id.node] = true;
  };
  for (const ValueId& id : wanted) want(id);
  for (auto id = static_cast<std::uint32_t>(needed.size()); id-- > 0;)
    if (needed[id])
      for (const ValueId& input : source_.node(id).inputs) want(input);
  for (std::uint32_t id = 0; id < needed.size(); ++id)
    if (needed[id]) write(id);
}

void Rewriter::copy_needed() {
  std::vector<ValueId> wanted;
  for (const auto& [name, value] : source_.outputs()) wanted.push_back(value);
  for (const auto& [leaf, value] : source_.updates()) {
    wanted.push_back({leaf, 0});
    wanted.push_back(value);
  }
  copy(wanted);
}

void Rewriter::copy_all() {
  std::vector<ValueId> wanted;
  for (std::uint32_t id = 0; id < source_.nodes().size(); ++id)
    for (std::uint32_t k = 0; k < source_.node(id).results.size(); ++k) wanted.push_back({id, k});
  copy(wanted);
}

const Tensor& Rewriter::at(ValueId old) const {
  if (!is_known(old))
    throw InternalError(fmt::format("rewriter: %{}:{} ({}) was not copied", old.node, old.result,
                                    source_.node(old.node).op->name));
  return values_[old.node][old.result];
}

void Rewriter::write_outputs() {
  for (const auto& [name, value] : source_.outputs()) target_->add_output(name, at(value).id());
}

void Rewriter::write_updates() {
  write_updates([](std::uint32_t) { return true; });
}

void Rewriter::write_updates(const std::function<bool(std::uint32_t leaf)>& is_kept) {
  for (const auto& [leaf, value] : source_.updates())
    if (is_kept(leaf)) target_->add_update(at({leaf, 0}).id().node, at(value).id());
}

void Rewriter::write(std::uint32_t id) {
  const Node& node = source_.node(id);
  std::vector<Tensor> inputs;
  for (const ValueId& input : node.inputs) inputs.push_back(at(input));
  const Results results = results_of(node, inputs);
  for (std::uint32_t k = 0; k < node.results.size(); ++k)
    if (!is_known({id, k})) set({id, k}, results[k]);
}

Rewriter::Results Rewriter::results_of(const Node& node, const std::vector<Tensor>& inputs) {
  if (rule_) {
    const GraphData::Scope scope(*target_, node.where);
    Results given = rule_(*this, node, inputs);
    for (std::size_t k = 0; !given.empty() && k < node.results.size(); ++k) {
      if (k < given.size() && given[k].type() == node.results[k]) continue;
      throw InternalError(
          fmt::format("rewriter: result {} of {} became {} instead of {}", k, node.op->name,
                      k < given.size() ? given[k].type().str() : "nothing", node.results[k].str()));
    }
    if (!given.empty()) return given;
  }
  return target_->append(*node.op, inputs, node.attrs, node.where);
}

Graph rewrite(const Graph& graph, const Rewriter::Rule& rule) {
  Graph rewritten;
  Rewriter rewriter(*graph.data(), rewritten.data(), rule);
  rewriter.copy_needed();
  rewriter.write_outputs();
  rewriter.write_updates();
  return rewritten;
}

}  // namespace pantala::ir
