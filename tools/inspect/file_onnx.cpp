// ONNX files: what goes in and out, the operators, and the initialisers. Nothing is imported: a
// file with operators that Pantala lacks is shown as well.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "pantala/onnx.h"
#include "tools/inspect/file_kinds.h"
#include "tools/inspect/table.h"

namespace pantala::tools {

namespace {

using Json = nlohmann::ordered_json;
using onnx::Summary;

struct Totals {
  std::uint64_t bytes = 0;
  std::int64_t nodes = 0;
};
Totals totals_of(const Summary& summary) {
  Totals totals;
  for (const Summary::Tensor& tensor : summary.tensors) totals.bytes += tensor.bytes;
  for (const auto& [name, count] : summary.operators) totals.nodes += count;
  return totals;
}

std::string as_text(const Summary& summary, const std::string& path) {
  const Totals totals = totals_of(summary);
  std::string text =
      fmt::format("{}: ONNX, opset {}{}\n{}, {}, {}\n", path, summary.opset,
                  summary.producer.empty() ? "" : fmt::format(", made by {}", summary.producer),
                  counted(static_cast<std::size_t>(totals.nodes), "node"),
                  counted(summary.tensors.size(), "initialiser"), size_text(totals.bytes));
  std::vector<std::vector<std::string>> values, operators, tensors, metadata;
  for (const auto& [key, value] : summary.metadata) metadata.push_back({key, value});
  for (const Summary::Value& value : summary.inputs)
    values.push_back({"input", value.name, value.str()});
  for (const Summary::Value& value : summary.outputs)
    values.push_back({"output", value.name, value.str()});
  for (const auto& [name, count] : summary.operators)
    operators.push_back({name, std::to_string(count)});
  for (const Summary::Tensor& tensor : summary.tensors)
    tensors.push_back({tensor.name, tensor.dtype, fmt::format("[{}]", fmt::join(tensor.shape, ",")),
                       std::to_string(tensor.bytes), tensor.external});
  const auto add = [&](const std::vector<Column>& columns, const auto& rows) {
    if (rows.empty()) return;
    text += '\n';
    text += table_text(columns, rows);
  };
  add({{"kind"}, {"name"}, {"type"}}, values);
  add({{"metadata"}, {"text"}}, metadata);
  add({{"operator"}, {.title = "nodes", .is_number = true}}, operators);
  add({{"initialiser"}, {"dtype"}, {"shape"}, {.title = "bytes", .is_number = true}, {"file"}},
      tensors);
  return text;
}

Json values_json(const std::vector<Summary::Value>& values) {
  Json list = Json::array();
  for (const Summary::Value& value : values)
    list.push_back({{"name", value.name}, {"type", value.str()}});
  return list;
}

std::string as_json(const Summary& summary, const std::string& path) {
  const Totals totals = totals_of(summary);
  Json tensors = Json::array();
  for (const Summary::Tensor& tensor : summary.tensors) {
    tensors.push_back({{"name", tensor.name},
                       {"dtype", tensor.dtype},
                       {"shape", tensor.shape},
                       {"bytes", tensor.bytes}});
    if (!tensor.external.empty()) tensors.back()["file"] = tensor.external;
  }
  Json metadata = Json::object();
  for (const auto& [key, value] : summary.metadata) metadata[key] = value;
  const Json document = {{"kind", "onnx"},
                         {"path", path},
                         {"name", summary.name},
                         {"producer", summary.producer},
                         {"opset", summary.opset},
                         {"metadata", metadata},
                         {"inputs", values_json(summary.inputs)},
                         {"outputs", values_json(summary.outputs)},
                         {"nodes", totals.nodes},
                         {"operators", summary.operators},
                         {"bytes", totals.bytes},
                         {"initialisers", tensors}};
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

// The format has no first bytes of its own.
bool recognises(const std::filesystem::path& path, std::string_view first_bytes) {
  return path.extension() == ".onnx" && !first_bytes.empty();
}

std::string show(const std::filesystem::path& path, bool json) {
  const Summary summary = onnx::summarize(path);
  return json ? as_json(summary, path.string()) : as_text(summary, path.string());
}

}  // namespace

FileKind onnx_file_kind() {
  return {.name = "ONNX file", .recognises = recognises, .show = show, .compiles = true};
}

}  // namespace pantala::tools
