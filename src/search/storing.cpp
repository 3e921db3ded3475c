#include "search/storing.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_set>
#include <utility>

#include "ir/rewriter.h"
#include "ir/shared_graph.h"
#include "ops/table.h"

namespace pantala::search {

namespace {

// Of the kinds of values that several kernels compute, so many are looked at.
constexpr std::size_t kMostKinds = 6;
// The part of all bytes that a kind must make up, or nothing comes of it.
constexpr double kLeastBytes = 0.005;

// How many groups compute each node.
class Makers {
 public:
  explicit Makers(const schedule::Decisions& decisions)
      : decisions_(decisions),
        graph_(*decisions.graph->data()),
        counts_(graph_.nodes().size()),
        last_(graph_.nodes().size(), SIZE_MAX),
        users_(graph_.nodes().size()) {
    for (std::size_t g = 0; g < decisions.groups.size(); ++g) {
      const schedule::Group& group = decisions.groups[g];
      if (group.is_copy) continue;
      for (const std::uint32_t anchor : group.anchors) count(anchor, g);
      for (const schedule::GroupOutput& output : group.outputs) count(output.value.node, g);
    }
    for (std::uint32_t id = 0; id < graph_.nodes().size(); ++id)
      for (const ValueId input : graph_.node(id).inputs) users_[input.node].push_back(id);
  }

  // Whether its readers compute it for themselves, and nothing is made of it on the way that they
  // all compute as well.
  bool is_last_repeated(std::uint32_t id) const {
    return counts_[id] > 1 && !schedule::is_movement(*graph_.node(id).op) &&
           !is_passed_on(id, counts_[id]);
  }
  std::size_t count(std::uint32_t id) const { return counts_[id]; }

 private:
  bool is_there(ValueId value) const {
    return decisions_.places.contains(value) || decisions_.host[value.node] ||
           schedule::is_leaf(*graph_.node(value.node).op);
  }
  void count(std::uint32_t id, std::size_t group) {
    if (std::exchange(last_[id], group) == group) return;
    ++counts_[id];
    for (const ValueId input : graph_.node(id).inputs)
      if (!is_there(input)) count(input.node, group);
  }
  bool is_passed_on(std::uint32_t id, std::size_t times) const {
    return std::ranges::any_of(users_[id], [&](std::uint32_t user) {
      if (counts_[user] < times) return false;
      return !schedule::is_movement(*graph_.node(user).op) || is_passed_on(user, times);
    });
  }

  const schedule::Decisions& decisions_;
  const ir::GraphData& graph_;
  std::vector<std::size_t> counts_, last_;  // by node; the last group that was counted
  std::vector<std::vector<std::uint32_t>> users_;
};

}  // namespace

std::vector<Repeated> computed_by_several(const Judged& judged) {
  const ir::GraphData& graph = *judged.graph().data();
  const Makers makers(judged.decisions);
  std::map<std::string, Repeated> by_name;
  for (std::uint32_t id = 0; id < graph.nodes().size(); ++id) {
    if (!makers.is_last_repeated(id)) continue;
    const ir::Node& made = graph.node(id);
    const Type& type = made.results[0];
    Repeated& repeated = by_name[fmt::format("{} {}", made.op->name, type.str())];
    repeated.nodes.push_back(id);
    repeated.bytes += static_cast<std::int64_t>(makers.count(id) - 1) * type.shape.numel() *
                      dtype_bytes(type.dtype);
  }
  std::vector<Repeated> all;
  for (auto& [name, repeated] : by_name) {
    repeated.name = name;
    all.push_back(std::move(repeated));
  }
  std::ranges::stable_sort(all, std::ranges::greater(), &Repeated::bytes);
  return all;
}

Graph with_kept(const Graph& graph, const std::vector<std::uint32_t>& nodes) {
  const ir::GraphData& source = *graph.data();
  std::unordered_set<const ir::Node*> wanted;
  for (const std::uint32_t id : nodes) wanted.insert(&source.node(id));
  return ir::rewrite(
      graph,
      [&](ir::Rewriter& into, const ir::Node& node,
          const std::vector<Tensor>& inputs) -> ir::Rewriter::Results {
        if (!wanted.contains(&node)) return {};
        ir::Rewriter::Results results;
        for (const Tensor& made : into.target()->append(*node.op, inputs, node.attrs, node.where))
          results.push_back(ops::apply("kept", {made}, {})[0]);
        return results;
      });
}

Judged more_stored(Judged given, Scales& scales, std::size_t most_nodes,
                   std::vector<Repeated>& stored) {
  const std::vector<Repeated> kinds = computed_by_several(given);
  const double all_bytes = given.estimate.bytes;
  const Graph graph = ir::shared(given.graph());
  std::vector<std::uint32_t> nodes;
  std::size_t looked_at = 0;
  Judged best = std::move(given);
  for (std::size_t k = 0; k < std::min(kinds.size(), kMostKinds); ++k) {
    looked_at += graph.size();
    const bool is_little = static_cast<double>(kinds[k].bytes) < kLeastBytes * all_bytes;
    if (is_little || looked_at > most_nodes) break;
    scales.check();
    std::vector<std::uint32_t> more = nodes;
    more.insert(more.end(), kinds[k].nodes.begin(), kinds[k].nodes.end());
    Judged next = scales.judge(with_kept(graph, more));
    if (!pays(next, best, best.estimate.microseconds)) continue;
    best = std::move(next);
    nodes = std::move(more);
    stored.push_back(kinds[k]);
  }
  return best;
}

}  // namespace pantala::search
