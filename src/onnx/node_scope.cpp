#include "onnx/node_scope.h"

#include <google/protobuf/unknown_field_set.h>

#include <algorithm>
#include <cctype>
#include <charconv>

namespace pantala::onnx {

namespace {

// Fields that are newer than the schema: entries of a name and a text.
constexpr int kNodeMetadata = 9, kGraphMetadata = 16;
// Layers in layers; names with more dots are no names of layers.
constexpr std::ptrdiff_t kMostDots = 64;

bool all_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](unsigned char c) { return std::isdigit(c) != 0; });
}

// "" for none.
std::string metadata(const google::protobuf::UnknownFieldSet& fields, int number,
                     std::string_view key) {
  for (int k = 0; k < fields.field_count(); ++k) {
    const google::protobuf::UnknownField& field = fields.field(k);
    pb::StringStringEntryProto entry;
    if (field.number() == number &&
        field.type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED &&
        entry.ParsePartialFromString(field.length_delimited()) && entry.key() == key)
      return entry.value();
  }
  return "";
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

// What stands between the last `before` and the next `end` behind it; "" if that is not there.
std::string_view last_between(std::string_view text, std::string_view before, char end) {
  const std::size_t at = text.rfind(before);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = text.substr(at + before.size());
  return rest.substr(0, std::min(rest.find(end), rest.size()));
}

// Of "p_fc_weight: PARAMETER target='fc.weight'" on a line for each, or, in earlier versions, of
// "arg=TensorArgument(name='p_fc_weight'), target='fc.weight'" one behind the other.
std::map<std::string, std::string, std::less<>> parameters_of(std::string_view signature) {
  constexpr std::string_view kTarget = "target='";
  std::map<std::string, std::string, std::less<>> found;
  for (std::size_t at; (at = signature.find(kTarget)) != std::string_view::npos;) {
    const std::string_view before = signature.substr(0, at);
    signature.remove_prefix(at + kTarget.size());
    std::string_view name = last_between(before, "name='", '\'');
    if (name.empty()) name = last_between(before, "\n", ':');
    const std::size_t end = signature.find('\'');
    if (end == std::string_view::npos) break;
    if (!name.empty()) found.emplace(name, signature.substr(0, end));
  }
  return found;
}

// "bn1_1" is the second use of "bn1".
std::string_view without_number(std::string_view name) {
  const std::size_t line = name.rfind('_');
  return line != std::string_view::npos && all_digits(name.substr(line + 1)) ? name.substr(0, line)
                                                                             : name;
}

}  // namespace

Scopes::Scopes(const pb::ModelProto& model) {
  const pb::GraphProto& graph = model.graph();
  for (const pb::TensorProto& tensor : graph.initializer()) add_layers(tensor.name());
  for (const pb::NodeProto& node : graph.node())
    if (node.op_type() == "Identity" && node.output_size() == 1) add_layers(node.output(0));
  parameters_ = parameters_of(metadata(graph.unknown_fields(), kGraphMetadata,
                                       "pkg.torch.export.ExportedProgram.graph_signature"));
  for (const auto& [name, parameter] : parameters_) called_.insert(parameter);
}

void Scopes::add_layers(std::string_view weight) {
  if (std::count(weight.begin(), weight.end(), '.') > kMostDots) return;
  for (std::size_t dot; (dot = weight.rfind('.')) != std::string_view::npos;) {
    weight = weight.substr(0, dot);
    layers_.emplace(weight);
  }
}

NodeScope Scopes::of(const pb::NodeProto& node) const {
  std::vector<std::string> scopes =
      quoted_texts(metadata(node.unknown_fields(), kNodeMetadata, "pkg.torch.onnx.name_scopes"));
  if (scopes.size() >= 2)
    return {.is_told = true,
            .layer = std::move(scopes[scopes.size() - 2]),
            .function = std::move(scopes.back())};
  if (!node.name().starts_with('/')) return {};
  return {.is_told = true, .layer = layer_of_name(node.name()), .function = {}};
}

namespace {

// The call of PyTorch that the node was made of, as the newer exporter writes it.
std::string call_of(const pb::NodeProto& node) {
  return metadata(node.unknown_fields(), kNodeMetadata, "pkg.torch.onnx.fx_node");
}

}  // namespace

bool Scopes::is_of_training_call(const pb::NodeProto& node) {
  const std::string call = call_of(node);
  return call.find("batch_norm_legit") != std::string::npos &&
         call.find("batch_norm_legit_no_training") == std::string::npos;
}

bool Scopes::is_of_detach(const pb::NodeProto& node) {
  return call_of(node).find("target=torch.ops.aten.detach") != std::string::npos;
}

// "...[target=torch.ops.aten.embedding.default](args = (%weight, %index, 0, False), kwargs = {})"
Scopes::EmbeddingCall Scopes::embedding_call(const pb::NodeProto& node) {
  constexpr std::string_view kCall = "target=torch.ops.aten.embedding.default](args = (";
  const std::string call = call_of(node);
  EmbeddingCall found;
  std::size_t at = call.find(kCall);
  if (at == std::string::npos) return found;
  std::string_view arguments = std::string_view(call).substr(at + kCall.size());
  arguments = arguments.substr(0, arguments.find(')'));
  for (int k = 0; !arguments.empty(); ++k) {
    const std::size_t end = std::min(arguments.find(", "), arguments.size());
    const std::string_view argument = arguments.substr(0, end);
    if (k == 2) std::from_chars(argument.data(), argument.data() + argument.size(), found.padding);
    if (k == 3) found.scales_by_frequency = argument == "True";
    arguments.remove_prefix(std::min(end + 2, arguments.size()));
  }
  return found;
}

// An entry of a list stands behind the list's own name: "/block/seq/seq.0/Conv" is "block.seq.0".
std::string Scopes::layer_of_name(std::string_view node) const {
  std::string outer, layer;
  std::string_view last;  // the part of the layer's name that `node` had before
  for (std::size_t end; (end = node.find('/', 1)) != std::string_view::npos;) {
    const std::string_view part = node.substr(1, end - 1);
    node.remove_prefix(end);
    const bool is_entry =
        !last.empty() && part.starts_with(last) && part.substr(last.size()).starts_with('.');
    if (!is_entry) outer = layer.empty() ? "" : layer + ".";
    last = part;
    layer = outer + std::string(part);
    if (const std::string first = outer + std::string(without_number(part));
        !layers_.contains(layer) && layers_.contains(first)) {
      layer = first;
      last = without_number(part);
    }
  }
  return layer;
}

std::vector<std::string> Scopes::parameters(const pb::NodeProto& node) const {
  if (parameters_.empty()) return {};
  const std::string call = call_of(node);
  std::vector<std::string> found;
  for (std::size_t at = 0; (at = call.find('%', at)) != std::string::npos;) {
    std::size_t end = ++at;
    while (end < call.size() &&
           (std::isalnum(static_cast<unsigned char>(call[end])) != 0 || call[end] == '_'))
      ++end;
    const auto parameter = parameters_.find(std::string_view(call).substr(at, end - at));
    if (parameter != parameters_.end()) found.push_back(parameter->second);
    at = end;
  }
  return found;
}

bool is_counted_name(std::string_view name) {
  return name.starts_with("val_") && all_digits(name.substr(4));
}

bool is_parameter_name(std::string_view name, const pb::ModelProto& model) {
  if (name.find_first_of("/:") != std::string_view::npos || is_counted_name(name)) return false;
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos)
    return model.producer_name() == "pytorch" && !name.empty() && !all_digits(name);
  // "input.4" is the fourth value of that name.
  return dot > 0 && dot + 1 < name.size() && !all_digits(name.substr(dot + 1));
}

// The exporters name their own nodes "Identity_3", those of the network "/bn1/Identity" and
// "node_clone".
bool is_of_network(const pb::NodeProto& node) {
  return node.name().starts_with('/') || node.name().starts_with("node_") ||
         !metadata(node.unknown_fields(), kNodeMetadata, "pkg.torch.onnx.name_scopes").empty();
}

}  // namespace pantala::onnx
