// Writing a model: the wanted outputs are copied with everything expanded that has no rule, every
// node is written by its rule, leaves become inputs and initialisers, and the file is read and run
// before it gets its name.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "base/text.h"
#include "io/file.h"
#include "ir/leaves.h"
#include "onnx/export_rules.h"
#include "onnx/export_symbolic.h"
#include "onnx/export_verify.h"
#include "onnx/proto.h"
#include "ops/expansion.h"
#include "pantala/error.h"
#include "pantala/onnx.h"
#include "plan/step_names.h"

namespace pantala::onnx {

namespace {

constexpr std::int64_t kOldestWritten = 14, kNewestWritten = 21;

// The version of the file format that an operator set came with.
std::int64_t format_version(std::int64_t opset) { return opset <= 18 ? 8 : opset <= 20 ? 9 : 10; }

// --- what is exported
bool depends_on(const ir::GraphData& graph, ValueId value, std::string_view input) {
  const std::optional<std::uint32_t> leaf = graph.find_leaf(input);
  if (!leaf) return false;
  std::vector<bool> needed(graph.nodes().size());
  needed[value.node] = true;
  for (auto id = static_cast<std::uint32_t>(needed.size()); id-- > 0;)
    if (needed[id])
      for (const ValueId& from : graph.node(id).inputs) needed[from.node] = true;
  return needed[*leaf];
}

// The graph with the wanted outputs alone, and without updates.
Graph with_wanted_outputs(const Graph& graph, const std::vector<std::string>& asked) {
  const auto outputs = graph.outputs();
  if (outputs.empty()) throw TypeError("export: the graph has no outputs");
  std::vector<std::pair<std::string, Tensor>> wanted;
  for (const std::string& name : asked) wanted.emplace_back(name, graph.output(name));
  if (asked.empty())
    for (const auto& [name, value] : outputs)
      if (name != plan::kLossOutput && !depends_on(*graph.data(), value.id(), "labels"))
        wanted.emplace_back(name, value);
  return graph.with_outputs(wanted.empty() ? outputs : wanted).without_updates();
}

// Ops of which more than the first result is read: their rules do not write those.
std::set<const ir::OpDef*> ops_with_further_results(const ir::GraphData& graph) {
  std::set<const ir::OpDef*> ops;
  const auto read = [&](const ValueId& id) {
    if (id.result > 0) ops.insert(graph.node(id.node).op);
  };
  for (const ir::Node& node : graph.nodes())
    for (const ValueId& input : node.inputs) read(input);
  for (const auto& [name, value] : graph.outputs()) read(value);
  return ops;
}

Graph expanded(const Graph& graph, std::int64_t opset) {
  const std::set<const ir::OpDef*> further = ops_with_further_results(*graph.data());
  const auto keeps = [&](const ir::OpDef& op) {
    if (op.leaf || op.expand == nullptr) return true;
    return find_export_rule(op, opset) != nullptr && !further.contains(&op);
  };
  return ir::rewrite(graph, ops::expand_unless(keeps));
}

void check_supported(const Graph& graph, const GraphWriter& writer) {
  const ir::GraphData& data = *graph.data();
  const std::set<const ir::OpDef*> further = ops_with_further_results(data);
  std::map<std::string, std::string> missing;  // the first place of each
  for (std::uint32_t id = 0; id < data.nodes().size(); ++id) {
    const ir::Node& node = data.node(id);
    if (node.op->leaf || writer.is_constant({id, 0})) continue;
    const bool has_rule = find_export_rule(*node.op, writer.opset()) != nullptr;
    if (has_rule && !further.contains(node.op)) continue;
    const std::string what = has_rule ? node.op->name + " (its further results)" : node.op->name;
    const std::string place = ir::message_prefix(node.op->name, node.where);
    missing.emplace(what, place.substr(0, place.size() - 2));
  }
  if (missing.empty()) return;
  std::vector<std::string> lines;
  for (const auto& [what, place] : missing) lines.push_back(what + ", first at " + place);
  throw UnsupportedError(fmt::format(
      "export: {} not said in ONNX operators of version {} (export the evaluation form of a model "
      "that draws random numbers):\n  {}",
      missing.size() == 1 ? "1 op is" : fmt::format("{} ops are", missing.size()), writer.opset(),
      fmt::join(lines, "\n  ")));
}

// --- leaves
void set_value_info(pb::ValueInfoProto& info, const std::string& name, const Type& type) {
  info.set_name(name);
  pb::TypeProto::Tensor& tensor = *info.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(onnx_type(type.dtype));
  for (const std::int64_t size : type.shape) tensor.mutable_shape()->add_dim()->set_dim_value(size);
  if (type.shape.rank() == 0) tensor.mutable_shape();
}

void check_weights(const Graph& graph, const Weights& weights) {
  std::vector<std::string> wrong;
  for (const LeafKind kind : {LeafKind::parameter, LeafKind::state})
    for (const Leaf& leaf : graph.leaves(kind)) {
      if (!weights.contains(leaf.name))
        wrong.push_back(fmt::format("{} {} is missing{}", leaf.name, leaf.value.type().str(),
                                    did_you_mean(leaf.name, weights.names())));
      else if (weights.type(leaf.name) != leaf.value.type())
        wrong.push_back(fmt::format("{} is {}, but {} is given", leaf.name, leaf.value.type().str(),
                                    weights.type(leaf.name).str()));
    }
  if (!wrong.empty())
    throw TypeError(
        fmt::format("export: the weights do not fit the graph:\n  {}", fmt::join(wrong, "\n  ")));
}

// Without weights initialisers have no data.
void write_leaves(const Graph& graph, const Weights* weights, GraphWriter& writer,
                  pb::GraphProto& proto) {
  for (const Leaf& leaf : graph.leaves()) {
    writer.define(leaf.value.id(), leaf.name);
    if (leaf.kind == LeafKind::input) {
      set_value_info(*proto.add_input(), leaf.name, leaf.value.type());
      continue;
    }
    pb::TensorProto& tensor = *proto.add_initializer();
    if (leaf.kind == LeafKind::scalar) {
      const ir::Node& node = graph.data()->node(leaf.value.id().node);
      set_tensor(tensor, leaf.name, Literal::scalar(ir::attributes<op::Scalar>(node).value));
      continue;
    }
    set_tensor(tensor, leaf.name, leaf.value.type());
    if (weights == nullptr) continue;
    const std::span<const std::byte> bytes = weights->bytes(leaf.name);
    tensor.set_raw_data(bytes.data(), bytes.size());
  }
}

// Outputs get their names: results of nodes are renamed, the rest (inputs, constants, results with
// a second name) are copied.
void write_outputs(const Graph& graph, GraphWriter& writer, pb::GraphProto& proto) {
  std::map<std::string, std::string> renamed;
  std::set<std::string> made;
  for (const pb::NodeProto& node : proto.node()) made.insert(node.output(0));
  for (const auto& [name, value] : graph.data()->outputs()) {
    const std::string inside = writer.name(value);
    set_value_info(*proto.add_output(), name, graph.data()->type(value));
    if (inside == name) continue;  // an input, under its own name
    if (made.contains(inside) && renamed.emplace(inside, name).second) continue;
    pb::NodeProto& copy = *proto.add_node();
    copy.set_op_type("Identity");
    copy.set_name(writer.fresh("Identity"));
    copy.add_input(inside);
    copy.add_output(name);
  }
  const auto rename = [&](std::string& name) {
    const auto found = renamed.find(name);
    if (found != renamed.end()) name = found->second;
  };
  for (pb::NodeProto& node : *proto.mutable_node()) {
    for (std::string& name : *node.mutable_input()) rename(name);
    for (std::string& name : *node.mutable_output()) rename(name);
  }
}

pb::ModelProto make_model(const Graph& wanted, const Weights* weights, std::int64_t opset) {
  const Graph graph = expanded(wanted, opset);
  pb::ModelProto model;
  model.set_ir_version(format_version(opset));
  model.set_producer_name("pantala");
  pb::OperatorSetIdProto& set = *model.add_opset_import();
  set.set_domain("");
  set.set_version(opset);
  pb::GraphProto& proto = *model.mutable_graph();
  proto.set_name("pantala");
  std::set<std::string> taken;
  for (const Leaf& leaf : graph.leaves()) taken.insert(leaf.name);
  for (const auto& [name, value] : graph.data()->outputs()) taken.insert(name);
  GraphWriter writer(graph, proto, opset, std::move(taken));
  check_supported(graph, writer);
  if (weights != nullptr) check_weights(graph, *weights);
  write_leaves(graph, weights, writer, proto);
  for (std::uint32_t id = 0; id < graph.data()->nodes().size(); ++id) {
    const NodeWriter node(writer, id);
    if (!node.node.op->leaf && !writer.is_constant({id, 0}))
      find_export_rule(*node.node.op, opset)->write(node);
  }
  write_outputs(graph, writer, proto);
  writer.prune();
  return model;
}

// --- files

// Moves the data of large initialisers out of the message; returns what belongs in the data file.
std::vector<std::string> take_external(pb::GraphProto& graph, const std::string& location) {
  constexpr std::size_t kStaysInside = 1024, kAlignment = 64;
  std::vector<std::string> parts;
  std::size_t offset = 0;
  for (pb::TensorProto& tensor : *graph.mutable_initializer()) {
    if (tensor.raw_data().size() <= kStaysInside) continue;
    const std::size_t size = tensor.raw_data().size();
    const auto entry = [&](const char* key, const std::string& value) {
      pb::StringStringEntryProto& made = *tensor.add_external_data();
      made.set_key(key);
      made.set_value(value);
    };
    entry("location", location);
    entry("offset", std::to_string(offset));
    entry("length", std::to_string(size));
    tensor.set_data_location(pb::TensorProto::EXTERNAL);
    parts.push_back(std::move(*tensor.mutable_raw_data()));
    tensor.clear_raw_data();
    parts.emplace_back((kAlignment - size % kAlignment) % kAlignment, '\0');
    offset += parts[parts.size() - 2].size() + parts.back().size();
  }
  return parts;
}

std::uint64_t initializer_bytes(const pb::GraphProto& graph) {
  std::uint64_t bytes = 0;
  for (const pb::TensorProto& tensor : graph.initializer()) bytes += tensor.raw_data().size();
  return bytes;
}

std::string serialized(const pb::ModelProto& model) {
  std::string bytes;
  if (!model.SerializeToString(&bytes))
    throw UnsupportedError("export: the model is larger than an ONNX file can be");
  return bytes;
}

std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// A folder beside the file, gone at the end: external data are checked there.
class ScratchFolder {
 public:
  explicit ScratchFolder(const std::filesystem::path& file)
      : path_(file.parent_path() /
              fmt::format(".{}.{}.tmp", file.filename().string(), ::getpid())) {
    std::error_code error;
    std::filesystem::create_directory(path_, error);
    if (error)
      throw IoError(fmt::format("{}: cannot be created: {}", path_.string(), error.message()));
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// How a file is proven before it gets its name; empty: it is not.
using Proof = std::function<void(const FileToVerify&)>;

void write_with_external_data(pb::ModelProto& model, const std::filesystem::path& path,
                              const Proof& proof) {
  const std::string location = path.filename().string() + ".data";
  const ScratchFolder scratch(path);
  {
    const std::vector<std::string> parts = take_external(*model.mutable_graph(), location);
    const std::vector<std::string_view> views(parts.begin(), parts.end());
    io::write_file(scratch.path() / location, views);
  }
  const std::string bytes = serialized(model);
  if (proof) proof({as_bytes(bytes), path.string(), scratch.path()});
  std::error_code error;
  std::filesystem::rename(scratch.path() / location, path.parent_path() / location, error);
  if (error)
    throw IoError(fmt::format("{}: cannot be written: {}", (path.parent_path() / location).string(),
                              error.message()));
  io::write_file(path, bytes);
}

void write(pb::ModelProto& model, const std::filesystem::path& path, const ExportOptions& options,
           const Proof& proof) {
  for (const auto& [key, value] : options.metadata) {
    pb::StringStringEntryProto& entry = *model.add_metadata_props();
    entry.set_key(key);
    entry.set_value(value);
  }
  if (initializer_bytes(model.graph()) > options.max_inline_bytes)
    return write_with_external_data(model, path, proof);
  const std::string bytes = serialized(model);
  model.Clear();
  if (proof) proof({as_bytes(bytes), path.string(), {}});
  io::write_file(path, bytes);
}

void check_opset(const ExportOptions& options) {
  if (options.opset < kOldestWritten || options.opset > kNewestWritten)
    throw TypeError(fmt::format("export: opset must be between {} and {}, got {}", kOldestWritten,
                                kNewestWritten, options.opset));
}

// TypeError and UnsupportedError also where a model cannot be made for another batch.
pb::ModelProto make_symbolic_model(const GraphOfBatch& graph, const Weights& weights,
                                   const ExportOptions& options) {
  const Graph one = with_wanted_outputs(graph(kOneBatch), options.outputs);
  std::set<std::string> leaves;
  for (const Leaf& leaf : one.leaves()) leaves.insert(leaf.name);
  pb::ModelProto model = make_model(one, &weights, options.opset);
  make_batch_symbolic(
      model,
      make_model(with_wanted_outputs(graph(kOtherBatch), options.outputs), nullptr, options.opset),
      leaves);
  return model;
}

}  // namespace

void export_model(const Graph& graph, const Weights& weights, const std::filesystem::path& path,
                  const ExportOptions& options) {
  check_opset(options);
  const Graph wanted = with_wanted_outputs(graph, options.outputs);
  pb::ModelProto model = make_model(wanted, &weights, options.opset);
  Proof proof;
  if (options.verify)
    proof = [&](const FileToVerify& file) { verify_export(wanted, weights, file, {}); };
  write(model, path, options, proof);
}

ExportedBatch export_model(const GraphOfBatch& graph, const Weights& weights,
                           const std::filesystem::path& path, const ExportOptions& options) {
  check_opset(options);
  // What is wrong with the model itself is said of the graph as it is.
  const Graph single = with_wanted_outputs(graph(1), options.outputs);
  make_model(single, nullptr, options.opset);
  check_weights(single, weights);
  Proof proof;
  if (options.verify)
    proof = [&](const FileToVerify& file) {
      for (const std::int64_t batch : {1, 3})
        verify_export(with_wanted_outputs(graph(batch), options.outputs), weights, file,
                      {{kBatchName, batch}});
    };
  std::string reason;
  try {
    pb::ModelProto model = make_symbolic_model(graph, weights, options);
    write(model, path, options, proof);
    return {};
  } catch (const TypeError& error) {
    reason = error.what();
  } catch (const UnsupportedError& error) { reason = error.what(); }
  export_model(single, weights, path, options);
  return {.symbolic = false, .reason = std::move(reason)};
}

}  // namespace pantala::onnx
