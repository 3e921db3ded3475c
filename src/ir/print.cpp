#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "ir/graph_data.h"
#include "ir/text_form.h"

namespace pantala::ir {

namespace {
std::string value_text(ValueId id) {
  return id.result == 0 ? fmt::format("%{}", id.node) : fmt::format("%{}:{}", id.node, id.result);
}

std::string node_text(const Node& node, std::uint32_t id) {
  std::string text = fmt::format("  %{} = {}", id, node.op->name);
  if (!node.inputs.empty()) {
    std::vector<std::string> inputs;
    for (const ValueId& input : node.inputs) inputs.push_back(value_text(input));
    text += fmt::format("({})", fmt::join(inputs, ", "));
  }
  if (!node.attrs.empty()) {
    std::vector<std::string> attrs;
    for (std::size_t k = 0; k < node.attrs.size(); ++k)
      attrs.push_back(fmt::format("{}={}", node.op->attrs[k].name, to_text(node.attrs[k])));
    text += fmt::format(" {{{}}}", fmt::join(attrs, ", "));
  }
  std::vector<std::string> types;
  for (const Type& type : node.results) types.push_back(type.str());
  return text + fmt::format(" : {}", fmt::join(types, ", "));
}

// "  # net.cpp:41 "fc2"": a comment, so labels are quoted lest they break the line.
std::string place_text(const Provenance& where) {
  std::string text;
  if (!where.file.empty()) text += fmt::format(" {}:{}", where.file, where.line);
  if (!where.label.empty()) text += fmt::format(" {}", in_quotes(where.label));
  return text.empty() ? text : fmt::format("  #{}", text);
}
}  // namespace

std::string print(const GraphData& graph, bool locations) {
  std::string text = "graph {\n";
  for (std::uint32_t id = 0; id < graph.nodes().size(); ++id) {
    const Node& node = graph.node(id);
    text += node_text(node, id);
    if (locations) text += place_text(node.where);
    text += "\n";
  }
  for (const auto& [name, id] : graph.outputs())
    text += fmt::format("  output {} = {}\n", in_quotes(name), value_text(id));
  for (const auto& [leaf, id] : graph.updates())
    text += fmt::format("  update %{} = {}\n", leaf, value_text(id));
  return text + "}\n";
}

}  // namespace pantala::ir
