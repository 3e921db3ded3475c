// What PyTorch's exporters tell by names.
#include <google/protobuf/unknown_field_set.h>

#include <algorithm>
#include <cctype>
#include <vector>

#include "onnx/merged_weights.h"

namespace pantala::onnx {

namespace {

bool all_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](unsigned char c) { return std::isdigit(c) != 0; });
}

// "val_12": a value inside of a layer.
bool is_counted(std::string_view name) {
  return name.starts_with("val_") && all_digits(name.substr(4));
}

// The texts of "['', 'layer1', 'layer1.0.bn1', 'batch_norm']".
std::vector<std::string> quoted_texts(std::string_view list) {
  std::vector<std::string> texts;
  for (std::size_t at = 0; (at = list.find('\'', at)) != std::string_view::npos;) {
    const std::size_t end = list.find('\'', at + 1);
    if (end == std::string_view::npos) break;
    texts.emplace_back(list.substr(at + 1, end - at - 1));
    at = end + 1;
  }
  return texts;
}

}  // namespace

bool is_parameter_name(std::string_view name, const pb::ModelProto& model) {
  if (name.find_first_of("/:") != std::string_view::npos || is_counted(name)) return false;
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos)
    return model.producer_name() == "pytorch" && !name.empty() && !all_digits(name);
  // "input.4" is the fourth value of that name.
  return dot > 0 && dot + 1 < name.size() && !all_digits(name.substr(dot + 1));
}

// Nodes have metadata since version 10 of the format, which is newer than the schema.
NodeScope scope_of(const pb::NodeProto& node) {
  constexpr int kMetadataField = 9;
  const google::protobuf::UnknownFieldSet& fields = node.unknown_fields();
  for (int k = 0; k < fields.field_count(); ++k) {
    const google::protobuf::UnknownField& field = fields.field(k);
    pb::StringStringEntryProto entry;
    if (field.number() != kMetadataField ||
        field.type() != google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED ||
        !entry.ParsePartialFromString(field.length_delimited()) ||
        entry.key() != "pkg.torch.onnx.name_scopes")
      continue;
    std::vector<std::string> scopes = quoted_texts(entry.value());
    if (scopes.size() < 2) return {};
    return {.layer = std::move(scopes[scopes.size() - 2]), .function = std::move(scopes.back())};
  }
  return {};
}

// The exporters name their own nodes "Identity_3", those of the network "/bn1/Identity" and
// "node_clone".
bool is_of_network(const pb::NodeProto& node) {
  return node.name().starts_with('/') || node.name().starts_with("node_") ||
         !scope_of(node).function.empty();
}

}  // namespace pantala::onnx
