#include "tools/explain/kernels.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "base/text.h"
#include "pantala/error.h"

namespace pantala::tools {

namespace {

std::string place_text(const ir::Provenance& where) {
  return where.file.empty() ? "" : fmt::format("{}:{}", where.file, where.line);
}

KernelNode described(const ir::GraphData& graph, std::uint32_t id) {
  const ir::Node& node = graph.node(id);
  std::vector<std::string> types;
  for (const Type& type : node.results) types.push_back(type.str());
  KernelNode result{.id = id,
                    .op = node.op->name,
                    .type = fmt::format("{}", fmt::join(types, ", ")),
                    .place = place_text(node.where),
                    .label = ir::leaf_kind(*node.op) ? graph.leaf_name(id) : node.where.label,
                    .inputs = {},
                    .rewrites = {}};
  for (const ValueId input : node.inputs) result.inputs.push_back(input.node);
  if (node.where.rewrites) result.rewrites = *node.where.rewrites;
  return result;
}

void add_once(std::vector<std::string>& list, const std::string& text) {
  if (!text.empty() && std::ranges::find(list, text) == list.end()) list.push_back(text);
}

// What the launches of a group cost together.
void add_launch(ExplainedKernel& kernel, const Report::Launch& launch) {
  kernel.launches.push_back(launch.name);
  add_once(kernel.codes, launch.kernel);
  kernel.layers = launch.layers;
  kernel.ops = launch.ops;
  kernel.flops += launch.flops;
  kernel.bytes += launch.read_bytes + launch.written_bytes;
  kernel.predicted_us += launch.predicted_us;
}

}  // namespace

std::vector<std::string> ExplainedKernel::rules() const {
  std::vector<std::string> names;
  for (const std::vector<KernelNode>* list : {&nodes, &leaves})
    for (const KernelNode& node : *list)
      for (const ir::Rewriting& one : node.rewrites) add_once(names, one.rule);
  return names;
}

std::vector<std::string> ExplainedKernel::places() const {
  std::vector<std::string> places;
  for (const KernelNode& node : nodes) add_once(places, node.place);
  return places;
}

std::vector<ExplainedKernel> explained_kernels(const Graph& chosen, const Report& report,
                                               const compiler::Options& options) {
  const ir::GraphData& graph = *chosen.data();
  const std::vector<schedule::GroupNodes> groups = compiler::kernel_nodes(chosen, options);
  std::vector<ExplainedKernel> kernels(groups.size());
  for (std::size_t k = 0; k < report.launches.size(); ++k) {
    ExplainedKernel& kernel = kernels.at(static_cast<std::size_t>(report.launches[k].group));
    add_launch(kernel, report.launches[k]);
    kernel.positions.push_back(k);
  }
  // A value may be stored twice, as a result and as a copy of it: the one that is computed counts.
  std::map<ValueId, std::size_t> makers;
  for (std::size_t k = 0; k < groups.size(); ++k)
    for (const ValueId value : groups[k].stored) makers.try_emplace(value, k);
  for (std::size_t k = 0; k < groups.size(); ++k) {
    if (kernels[k].launches.empty())
      throw InternalError(fmt::format("explain: group {} has no launch", k));
    for (const std::uint32_t id : groups[k].computed)
      kernels[k].nodes.push_back(described(graph, id));
    for (const ValueId value : groups[k].read) {
      const auto maker = makers.find(value);
      if (maker == makers.end())
        kernels[k].leaves.push_back(described(graph, value.node));
      else if (maker->second != k && !std::ranges::count(kernels[k].reads, maker->second))
        kernels[k].reads.push_back(maker->second);
    }
  }
  return kernels;
}

std::vector<std::size_t> find_kernels(const std::vector<ExplainedKernel>& kernels,
                                      std::string_view name) {
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error == std::errc() && end == name.data() + name.size() && number < kernels.size())
    return {number};
  std::vector<std::size_t> found;
  std::vector<std::string> names;
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    if (std::ranges::find(kernels[k].launches, name) != kernels[k].launches.end())
      found.push_back(k);
    for (const std::string& launch : kernels[k].launches) add_once(names, launch);
  }
  if (found.empty())
    throw TypeError(fmt::format("there is no kernel '{}'{}; they are numbered from 0 to {}", name,
                                did_you_mean(name, names), kernels.size() - 1));
  return found;
}

}  // namespace pantala::tools
