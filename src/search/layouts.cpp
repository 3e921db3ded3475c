#include "search/layouts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_set>
#include <utility>

#include "ir/rewriter.h"
#include "ir/shared_graph.h"
#include "ops/conv.h"
#include "ops/face.h"
#include "ops/table.h"

namespace pantala::search {

namespace {

// Of the kinds of convolutions, so many are tried by themselves.
constexpr std::size_t kMostKinds = 4;

op::ConvAttrs& window_of(op::ConvAttrs& attributes) { return attributes; }
op::ConvAttrs& window_of(auto& attributes) { return attributes.window; }

// Calls the function with the attributes of a convolution or of one of its gradients.
template <class Function>
void with_attributes(const ir::Node& node, const Function& function) {
  const auto each = [&]<class Face>(std::type_identity<Face>) {
    if (ops::is<Face>(node)) function(ir::attributes<Face>(node));
  };
  each(std::type_identity<op::Convolution>());
  each(std::type_identity<op::ConvolutionInputGrad>());
  each(std::type_identity<op::ConvolutionWeightGrad>());
}

bool is_direct(const ir::Node& node) {
  bool direct = false;
  with_attributes(node,
                  [&](auto attributes) { direct = window_of(attributes).algorithm == "direct"; });
  return direct;
}

ir::AttrValues planar(const ir::Node& node) {
  ir::AttrValues values = node.attrs;
  with_attributes(node, [&](auto attributes) {
    window_of(attributes).algorithm = "planar";
    values = ir::to_values(attributes);
  });
  return values;
}

}  // namespace

std::vector<Imaged> with_channels_last(const Graph& graph) {
  const ir::GraphData& data = *graph.data();
  std::map<std::string, Imaged> by_name;
  for (std::uint32_t id = 0; id < data.nodes().size(); ++id) {
    const ir::Node& node = data.node(id);
    if (!is_direct(node)) continue;
    const Type& type = node.results[0];
    Imaged& kind = by_name[fmt::format("{} {}", node.op->name, type.str())];
    kind.nodes.push_back(id);
    for (const ValueId input : node.inputs) kind.elements += data.type(input).shape.numel();
    kind.elements += type.shape.numel();
  }
  std::vector<Imaged> kinds;
  for (auto& [name, kind] : by_name) {
    kind.name = name;
    kinds.push_back(std::move(kind));
  }
  std::ranges::stable_sort(kinds, std::ranges::greater(), &Imaged::elements);
  return kinds;
}

Graph by_planes(const Graph& graph, const std::vector<std::uint32_t>& nodes) {
  const ir::GraphData& source = *graph.data();
  std::unordered_set<const ir::Node*> wanted;
  for (const std::uint32_t id : nodes) wanted.insert(&source.node(id));
  return ir::rewrite(graph,
                     [&](ir::Rewriter& into, const ir::Node& node,
                         const std::vector<Tensor>& inputs) -> ir::Rewriter::Results {
                       if (!wanted.contains(&node)) return {};
                       return into.target()->append(*node.op, inputs, planar(node), node.where);
                     });
}

Judged better_layouts(Judged given, Scales& scales, std::size_t most_nodes,
                      std::vector<Imaged>& changed) {
  const Graph graph = ir::shared(given.graph());
  const std::vector<Imaged> kinds = with_channels_last(graph);
  std::vector<std::uint32_t> nodes;
  std::size_t looked_at = 0;
  Judged best = std::move(given);
  const auto try_with = [&](const std::vector<Imaged>& more) {
    looked_at += graph.size();
    if (looked_at > most_nodes) return false;
    scales.check();
    std::vector<std::uint32_t> all = nodes;
    for (const Imaged& kind : more) all.insert(all.end(), kind.nodes.begin(), kind.nodes.end());
    Judged next = scales.judge(by_planes(graph, all));
    if (!pays(next, best, best.estimate.microseconds)) return false;
    best = std::move(next);
    nodes = std::move(all);
    changed.insert(changed.end(), more.begin(), more.end());
    return true;
  };
  if (kinds.empty() || try_with(kinds) || kinds.size() == 1) return best;
  for (std::size_t k = 0; k < std::min(kinds.size(), kMostKinds); ++k) try_with({kinds[k]});
  return best;
}

}  // namespace pantala::search
