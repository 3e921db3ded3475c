#include "tools/op_reference.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <nlohmann/json.hpp>

#include "ops/table.h"
#include "pantala/autodiff.h"
#include "pantala/error.h"
#include "pantala/ops.h"

namespace pantala::tools {

using ir::AttrSpec;
using ir::AttrValue;
using ir::OpDef;
using Json = nlohmann::ordered_json;

namespace {

using Families = std::map<std::string, std::vector<const OpDef*>>;

Families by_family(const std::vector<const OpDef*>& ops) {
  Families families;
  for (const OpDef* op : ops) families[op->family].push_back(op);
  return families;
}

std::string_view kind_of_attribute(const AttrSpec& attr) {
  constexpr std::string_view kNames[] = {"bool", "int",   "float",       "string",
                                         "ints", "dtype", "initializer", "tensor"};
  return attr.choices.empty() ? kNames[attr.default_value.index()] : "choice";
}

std::string default_text(const AttrSpec& attr) {
  return attr.required ? "required" : ir::to_text(attr.default_value);
}

Json to_json(const AttrValue& value) {
  const auto one = [&](const auto& v) -> Json {
    using T = std::decay_t<decltype(v)>;
    if constexpr (std::is_same_v<T, double>)
      return std::isfinite(v) ? Json(v) : Json(ir::to_text(value));
    else if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, std::int64_t> ||
                       std::is_same_v<T, std::string> || std::is_same_v<T, ir::Ints>)
      return v;
    else
      return ir::to_text(value);
  };
  return std::visit(one, value);
}

// "composite, differentiable": what a reader wants to know beside the meaning.
std::string properties(const OpDef& op) {
  std::string text = kind_of(op);
  if (!op.leaf) text += is_differentiable(op) ? ", differentiable" : ", not differentiable";
  if (!op.onnx.empty()) text += ", ONNX " + op.onnx;
  return text;
}

std::string as_text(const OpDef& op) {
  std::string text = fmt::format("{}{}\n    {}\n    {} ({})\n", op.name, op.signature, op.doc,
                                 op.family, properties(op));
  for (const AttrSpec& attr : op.attrs) {
    text += fmt::format("    {}: {} = {}  {}", attr.name, kind_of_attribute(attr),
                        default_text(attr), attr.doc);
    if (!attr.choices.empty()) text += fmt::format(" [{}]", fmt::join(attr.choices, ", "));
    text += "\n";
  }
  return text;
}

// A bar would end the cell of a table.
std::string cell(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '|') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string as_markdown(const OpDef& op) {
  std::string text =
      fmt::format("### `{}{}`\n\n{} *{}.*\n", op.name, op.signature, op.doc, properties(op));
  if (op.attrs.empty()) return text;
  text += "\n| attribute | kind | default | |\n|---|---|---|---|\n";
  for (const AttrSpec& attr : op.attrs) {
    std::string doc = attr.doc;
    if (!attr.choices.empty())
      doc += fmt::format("{}`{}`", doc.empty() ? "" : ": ", fmt::join(attr.choices, "`, `"));
    text += fmt::format("| `{}` | {} | {} | {} |\n", attr.name, kind_of_attribute(attr),
                        attr.required ? "required" : "`" + default_text(attr) + "`", cell(doc));
  }
  return text;
}

Json as_json(const OpDef& op) {
  Json attributes = Json::array();
  for (const AttrSpec& attr : op.attrs) {
    Json entry{{"name", attr.name}, {"kind", kind_of_attribute(attr)}, {"required", attr.required}};
    if (!attr.required) entry["default"] = to_json(attr.default_value);
    if (!attr.choices.empty()) entry["choices"] = attr.choices;
    entry["doc"] = attr.doc;
    attributes.push_back(std::move(entry));
  }
  Json inputs = Json::array();
  for (const ir::ArgSpec& input : op.inputs)
    inputs.push_back(
        {{"name", input.name}, {"optional", input.optional}, {"variadic", input.variadic}});
  return {{"name", op.name},       {"signature", op.signature},
          {"doc", op.doc},         {"family", op.family},
          {"kind", kind_of(op)},   {"differentiable", is_differentiable(op)},
          {"onnx", op.onnx},       {"inputs", inputs},
          {"results", op.results}, {"attributes", attributes}};
}

constexpr std::string_view kMarkdownHead = R"(# Ops

The closed list of ops, by family. This page is the output of `pantala ops --markdown`: change the declarations in `src/ops/`, not the page.
A *primitive* has a meaning of its own, a *composite* is defined by other ops, *sugar* is expanded as soon as it is built, a *leaf* enters
from outside. In a signature `x?` may be left out and `xs...` stands for any number of inputs.
)";

}  // namespace

std::string kind_of(const OpDef& op) {
  if (op.leaf) return "leaf";
  if (op.sugar) return "sugar";
  return op.expand ? "composite" : "primitive";
}

bool is_differentiable(const OpDef& op) {
  if (!op.differentiable()) return false;
  for (const ir::Sample& sample : op.samples()) {
    Graph graph;
    std::vector<Operand> inputs;
    std::vector<Tensor> wrt;
    for (std::size_t k = 0; k < sample.inputs.size(); ++k) {
      const Tensor input =
          graph.input(fmt::format("in{}", k), sample.inputs[k].shape, sample.inputs[k].dtype);
      inputs.emplace_back(input);
      if (is_float(input.dtype()) && !op.is_index(static_cast<int>(k))) wrt.push_back(input);
    }
    if (wrt.empty()) return false;
    std::vector<Tensor> sums;
    for (const Tensor& result : ops::apply(op, inputs, sample.attrs))
      if (is_float(result.dtype())) sums.push_back(sum(result));
    if (sums.empty()) return false;
    try {
      differentiate(graph, add_n(sums), wrt);
      return true;
    } catch (const TypeError&) { return false; }
  }
  return true;
}

std::string op_reference(const std::vector<const OpDef*>& ops, ReferenceFormat format) {
  const Families families = by_family(ops);
  if (format == ReferenceFormat::json) {
    Json list = Json::array();
    for (const OpDef* op : ops) list.push_back(as_json(*op));
    return list.dump(2) + "\n";
  }
  std::string text;
  if (format == ReferenceFormat::markdown) text = kMarkdownHead;
  for (const auto& [family, members] : families) {
    if (format == ReferenceFormat::markdown) text += fmt::format("\n## {}\n", family);
    for (const OpDef* op : members) {
      if (!text.empty()) text += "\n";
      text += format == ReferenceFormat::markdown ? as_markdown(*op) : as_text(*op);
    }
  }
  return text;
}

}  // namespace pantala::tools
