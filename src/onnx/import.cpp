// Reading a model: its messages become values by name, its nodes are put in an order of evaluation
// and translated one by one. What cannot be translated is collected, with everything that depends
// on it left out, so that one error lists all of it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <queue>
#include <set>
#include <unordered_map>

#include "base/text.h"
#include "ir/graph_data.h"
#include "onnx/adapters.h"
#include "onnx/merged_weights.h"
#include "onnx/model_inputs.h"
#include "onnx/node.h"
#include "onnx/proto.h"
#include "onnx/signatures.h"
#include "onnx/training_notes.h"
#include "pantala/error.h"
#include "pantala/interpreter.h"
#include "pantala/onnx.h"

namespace pantala::onnx {

namespace {

// Elements that may be computed while a file of no size is read, and more per byte of it.
constexpr std::int64_t kFreeElements = 1 << 19, kElementsPerByte = 4;

// Inputs that an error asks for; more of them are no advice.
constexpr std::size_t kMostSources = 4;

std::int64_t opset_of(const pb::ModelProto& model, const std::string& name) {
  std::int64_t version = 0;
  for (const pb::OperatorSetIdProto& set : model.opset_import())
    if (is_default_domain(set.domain())) version = std::max(version, set.version());
  const bool needed =
      std::any_of(model.graph().node().begin(), model.graph().node().end(),
                  [](const pb::NodeProto& node) { return is_default_domain(node.domain()); });
  if (version < 1 && needed)
    throw TypeError(fmt::format("{}: it does not say the version of its operators", name));
  if (version > kNewestOpset)
    throw UnsupportedError(
        fmt::format("{}: its operators are of version {}; versions {} to {} are read", name,
                    version, kOldestOpset, kNewestOpset));
  return version;
}

class Importer {
 public:
  Importer(const pb::ModelProto& model, TensorPlace source, const ImportOptions& options)
      : model_(model), graph_(model.graph()), context_{options, std::move(source)} {
    context_.opset = opset_of(model, context_.source.name);
    context_.elements_left =
        kFreeElements + kElementsPerByte * static_cast<std::int64_t>(model.ByteSizeLong());
  }

  // `guessed`: weights that were separated without the file saying so.
  Model run(const std::vector<std::string>& guessed) {
    for (const pb::NodeProto& node : graph_.node())
      context_.read_names.insert(node.input().begin(), node.input().end());
    for (const pb::ValueInfoProto& output : graph_.output())
      context_.read_names.insert(output.name());
    if (context_.options.training)
      context_.warnings = training_notes(model_, context_.source, guessed);
    values_ = leaf_values(graph_, context_);
    for (const int index : order_of_evaluation()) translate(graph_.node(index), index);
    if (!unsupported_.empty())
      throw UnsupportedError(fmt::format("{}: {} cannot be read:\n  {}", context_.source.name,
                                         counted(unsupported_.size(), "node"),
                                         fmt::join(unsupported_, "\n  ")));
    for (const auto& [leaf, latest] : context_.followed)
      if (leaf != latest) context_.graph.update(leaf, latest);
    name_outputs();
    return {std::move(context_.graph), std::move(context_.weights), graph_.name(), context_.opset,
            std::move(context_.warnings)};
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    throw TypeError(context_.source.name + ": " + message);
  }
  std::string place(const pb::NodeProto& node) const {
    return fmt::format("{} '{}'", node.op_type(), label_of(node));
  }

  // Which node makes a name; -1 for the leaves.
  std::unordered_map<std::string, int> producers() const {
    std::unordered_map<std::string, int> made;
    for (const auto& [name, value] : values_) made.emplace(name, -1);
    for (int k = 0; k < graph_.node_size(); ++k)
      for (const std::string& output : graph_.node(k).output())
        if (!output.empty() && !made.emplace(output, k).second)
          fail(fmt::format("{}: '{}' is made twice", place(graph_.node(k)), output));
    return made;
  }

  // As in the file where that is possible. A node waits for those that make its inputs.
  std::vector<int> order_of_evaluation() const {
    const std::unordered_map<std::string, int> made = producers();
    std::vector<std::vector<int>> readers(static_cast<std::size_t>(graph_.node_size()));
    std::vector<int> waits(readers.size(), 0);
    std::priority_queue<int, std::vector<int>, std::greater<>> ready;
    for (int k = 0; k < graph_.node_size(); ++k) {
      for (const std::string& input : graph_.node(k).input()) {
        if (input.empty()) continue;
        const auto found = made.find(input);
        if (found == made.end()) fail_unknown(graph_.node(k), input, made);
        if (found->second < 0) continue;
        readers[static_cast<std::size_t>(found->second)].push_back(k);
        ++waits[static_cast<std::size_t>(k)];
      }
      if (waits[static_cast<std::size_t>(k)] == 0) ready.push(k);
    }
    std::vector<int> order;
    while (!ready.empty()) {
      order.push_back(ready.top());
      ready.pop();
      for (const int reader : readers[static_cast<std::size_t>(order.back())])
        if (--waits[static_cast<std::size_t>(reader)] == 0) ready.push(reader);
    }
    if (order.size() != readers.size()) {
      const auto stuck = std::find_if(waits.begin(), waits.end(), [](int n) { return n > 0; });
      fail(fmt::format("{}: its inputs depend on its own result",
                       place(graph_.node(static_cast<int>(stuck - waits.begin())))));
    }
    return order;
  }

  [[noreturn]] void fail_unknown(const pb::NodeProto& node, const std::string& input,
                                 const std::unordered_map<std::string, int>& made) const {
    std::vector<std::string> names;
    for (const auto& [name, producer] : made) names.push_back(name);
    std::sort(names.begin(), names.end());
    fail(fmt::format("{}: nothing makes its input '{}'{}", place(node), input,
                     did_you_mean(input, names)));
  }

  // The values of the inputs; false if one of them could not be translated.
  bool inputs_of(const pb::NodeProto& node, std::vector<ValuePtr>& inputs) const {
    for (const std::string& name : node.input()) {
      if (name.empty()) {
        inputs.push_back(nullptr);
        continue;
      }
      const auto found = values_.find(name);
      if (found == values_.end()) return false;
      inputs.push_back(found->second);
    }
    return true;
  }

  void translate(const pb::NodeProto& node, int index) {
    std::vector<ValuePtr> inputs;
    const bool known_inputs = inputs_of(node, inputs);
    if (node.output_size() == 0) return;
    try {
      const Adapter* adapter =
          is_default_domain(node.domain()) ? find_adapter(node.op_type()) : nullptr;
      if (adapter == nullptr)
        throw UnsupportedError(is_default_domain(node.domain())
                                   ? "there is no such operator here"
                                   : fmt::format("operators of '{}' are not read", node.domain()));
      check_signature(node, context_.opset);
      if (!known_inputs) return;  // the reason is listed already
      const ir::Provenance where{base_name(context_.source.name),
                                 static_cast<std::uint32_t>(index + 1), label_of(node)};
      if (adapter->folds && all_constant(inputs) && evaluate(node, inputs, *adapter, where)) return;
      const ir::GraphData::Scope scope(*context_.graph.data(), where);
      Node translated(node, inputs, context_, context_.graph, adapter->in_f32);
      adapter->convert(translated);
      keep(node, translated.given(), sources_of(inputs));
    } catch (const UnsupportedError& error) {
      unsupported_.push_back(fmt::format("{}: {}", place(node), error.what()));
      stand_in_for(node);
    } catch (const TypeError& error) { fail_at(node, error); } catch (const ValueError& error) {
      fail_at(node, error);
    }
  }

  // Behind a node that is refused nothing else is an error of its own.
  void fail_at(const pb::NodeProto& node, const Error& error) const {
    if (unsupported_.empty()) fail(fmt::format("{}: {}", place(node), error.what()));
  }

  // Results that the file gives a type and a shape go on as inputs, so that what is refused behind
  // them is listed, too. The graph is not handed out.
  void stand_in_for(const pb::NodeProto& node) {
    for (const std::string& name : node.output()) {
      const auto info = std::find_if(graph_.value_info().begin(), graph_.value_info().end(),
                                     [&](const auto& value) { return value.name() == name; });
      if (name.empty() || info == graph_.value_info().end()) continue;
      const std::optional<Type> type = told_type(*info);
      if (!type || !is_float(type->dtype)) continue;
      auto value = std::make_shared<Value>(Value{.name = name, .type = *type});
      value->tensor = context_.graph.input("refused " + name, type->shape, type->dtype);
      values_.emplace(name, std::move(value));
    }
  }

  // None where a size is not a number.
  static std::optional<Type> told_type(const pb::ValueInfoProto& info) {
    const pb::TypeProto_Tensor& told = info.type().tensor_type();
    const std::optional<DType> dtype = dtype_of(told.elem_type());
    if (!dtype || !told.has_shape()) return {};
    std::vector<std::int64_t> sizes;
    for (const auto& dim : told.shape().dim()) {
      if (!dim.has_dim_value() || dim.dim_value() < 0) return {};
      sizes.push_back(dim.dim_value());
    }
    return Type{*dtype, Shape(sizes)};
  }

  static bool all_constant(const std::vector<ValuePtr>& inputs) {
    return std::all_of(inputs.begin(), inputs.end(), [](const ValuePtr& value) {
      return value == nullptr || value->constant != nullptr;
    });
  }

  // Every evaluation copies its inputs.
  bool can_copy(const std::vector<ValuePtr>& inputs) const {
    std::int64_t left = context_.elements_left;
    for (const ValuePtr& input : inputs)
      if (input != nullptr && (left -= input->type.shape.numel()) < 0) return false;
    return true;
  }

  // Computes a node of constants; false if that is too much for this file.
  bool evaluate(const pb::NodeProto& node, const std::vector<ValuePtr>& inputs,
                const Adapter& adapter, const ir::Provenance& where) {
    if (!can_copy(inputs)) return false;
    Graph graph;
    const ir::GraphData::Scope scope(*graph.data(), where);
    Node translated(node, inputs, context_, graph, adapter.in_f32);
    adapter.convert(translated);
    std::int64_t elements = 0;
    for (const ir::Node& made : graph.data()->nodes())
      for (const Type& type : made.results) {
        if (type.shape.numel() > context_.elements_left) return false;
        elements += type.shape.numel();
        if (elements > context_.elements_left) return false;
      }
    context_.elements_left -= elements;
    std::vector<Node::Result> results = translated.given();
    for (Node::Result& result : results)
      if (const Tensor* tensor = std::get_if<Tensor>(&result))
        result = std::make_shared<const Literal>(
            rounded(std::move(ref::evaluate(graph, {*tensor}, {})[0])));
    keep(node, results, {});
    return true;
  }

  // The interpreter holds every float in double.
  static Literal rounded(Literal literal) {
    if (literal.is_float())
      for (double& value : literal.f()) value = round_to(literal.dtype(), value);
    return literal;
  }

  static std::vector<std::string> sources_of(const std::vector<ValuePtr>& inputs) {
    std::set<std::string> all;
    for (const ValuePtr& input : inputs) {
      if (input == nullptr || input->constant != nullptr) continue;
      if (input->sources.empty()) return {};
      all.insert(input->sources.begin(), input->sources.end());
    }
    return all.size() <= kMostSources ? std::vector<std::string>(all.begin(), all.end())
                                      : std::vector<std::string>();
  }

  void keep(const pb::NodeProto& node, const std::vector<Node::Result>& results,
            const std::vector<std::string>& sources) {
    for (int k = 0; k < node.output_size(); ++k) {
      const std::string& name = node.output(k);
      if (name.empty() || !context_.read_names.contains(name)) continue;
      const Node::Result& result = results[static_cast<std::size_t>(k)];
      ValuePtr value;
      if (const Tensor* tensor = std::get_if<Tensor>(&result)) {
        value = std::make_shared<Value>(Value{.name = name, .type = tensor->type()});
        value->tensor = *tensor;
        value->sources = sources;
      } else if (const auto* literal = std::get_if<std::shared_ptr<const Literal>>(&result)) {
        value = std::make_shared<Value>(Value{.name = name, .type = (*literal)->type()});
        value->constant = *literal;
      } else if (const auto* same = std::get_if<ValuePtr>(&result)) {
        value = *same;
      } else {
        throw UnsupportedError(fmt::format("its result {} is not available", k + 1));
      }
      values_.emplace(name, std::move(value));
    }
  }

  void name_outputs() {
    for (const pb::ValueInfoProto& output : graph_.output()) {
      const auto found = values_.find(output.name());
      if (found == values_.end()) fail(fmt::format("nothing makes the output '{}'", output.name()));
      context_.graph.output(output.name(), context_.tensor(*found->second));
    }
  }

  const pb::ModelProto& model_;
  const pb::GraphProto& graph_;
  Context context_;
  Values values_;
  std::vector<std::string> unsupported_;
};

Model import(pb::ModelProto model, const TensorPlace& source, const ImportOptions& options) {
  if (options.training && options.evaluation)
    throw TypeError(source.name + ": it is read for training or for evaluation, not for both");
  if (options.as_exported && !options.training)
    throw TypeError(source.name + ": layers stay as exported when it is read for training");
  std::vector<std::string> guessed;
  if (options.trainable) guessed = separate_merged_weights(model, source);
  return Importer(model, source, options).run(guessed);
}

}  // namespace

Model import_model(const std::filesystem::path& path, const ImportOptions& options) {
  const std::filesystem::path folder = path.parent_path();
  return import(read_model(path), {path.string(), folder.empty() ? "." : folder}, options);
}

Model import_model(std::span<const std::byte> file, const std::string& name,
                   const ImportOptions& options, const std::filesystem::path& folder) {
  return import(parse_model(file, name), {name, folder}, options);
}

}  // namespace pantala::onnx
