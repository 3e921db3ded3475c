#include "tools/bench/workloads.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>

#include "base/text.h"
#include "ir/graph_data.h"
#include "pantala/error.h"
#include "pantala/onnx.h"
#include "pantala/ops.h"
#include "pantala/zoo.h"
#include "tools/bench/transformer.h"
#include "tools/fixtures/fill.h"

namespace pantala::tools {

namespace {

Literal floats(const std::string& name, const Shape& shape) {
  return make({.name = "bench." + name, .shape = shape});
}

Literal integers(const std::string& name, const Shape& shape, std::int64_t high) {
  return make({.name = "bench." + name, .shape = shape, .integer = true, .high = high});
}

// Labels as probabilities: 1 for the class, 0 for the others.
Literal one_hot_labels(std::int64_t batch, std::int64_t classes) {
  const Literal chosen = integers("labels", {batch}, classes);
  std::vector<double> values(static_cast<std::size_t>(batch * classes));
  for (std::int64_t k = 0; k < batch; ++k)
    values[static_cast<std::size_t>(k * classes + chosen.i()[static_cast<std::size_t>(k)])] = 1;
  return Literal::floats({batch, classes}, std::move(values));
}

// The graph with one of its outputs alone.
Graph only_output(const Graph& graph, std::string_view name) {
  return graph.with_outputs({{std::string(name), graph.output(name)}});
}

// Images, sounds or tokens for the model's input, and labels for its loss.
std::map<std::string, Literal> data_of(const zoo::Model& model, const std::string& input,
                                       const std::string& labels, std::int64_t classes) {
  const Type& type = model.input.type();
  return {{input, is_float(type.dtype) ? floats("images", type.shape)
                                       : integers("tokens", type.shape, classes)},
          {labels, integers("labels", model.labels.shape(), classes)}};
}

// A model that is the same in training and evaluation.
Workload of_model(const zoo::Model& model, const std::string& input, std::int64_t classes,
                  const optim::Optimizer& optimizer, BenchMode mode) {
  Workload w;
  w.optimizer = optimizer;
  w.inputs = data_of(model, input, "labels", classes);
  if (mode == BenchMode::infer) {
    w.graph = only_output(model.graph, "logits");
    w.inputs.erase("labels");
    return w;
  }
  w.graph = model.graph;
  w.loss = w.graph.value(model.loss.id());
  return w;
}

Workload small_mlp(std::int64_t batch, BenchMode mode) {
  zoo::Model model;
  model.input = model.graph.input("x", {batch, 784});
  model.labels = model.graph.input("labels", {batch, 10});
  model.logits = nn::linear("fc2", relu(nn::linear("fc1", model.input, 128)), 10);
  model.loss = cross_entropy(model.logits, model.labels);
  model.graph.output("logits", model.logits);
  model.graph.output("loss", model.loss);
  Workload w = of_model(model, "x", 10, optim::sgd(0.01), mode);
  if (mode == BenchMode::train) w.inputs["labels"] = one_hot_labels(batch, 10);
  return w;
}

Workload wide_mlp(std::int64_t batch, BenchMode mode) {
  return of_model(
      zoo::mlp({.batch = batch, .hidden = {1024, 1024}, .activation = nn::Activation::gelu}), "x",
      10, optim::adam(1e-3), mode);
}

Workload lenet(std::int64_t batch, BenchMode mode) {
  return of_model(zoo::lenet({.batch = batch}), "x", 10, optim::adam(1e-3), mode);
}

using Resnet = zoo::Model (*)(std::int64_t, const zoo::ResnetOptions&, Where);
Workload resnet(Resnet training, Resnet inference, std::int64_t batch, BenchMode mode) {
  const Resnet make = mode == BenchMode::train ? training : inference;
  const zoo::Model model = make(batch, {.form = zoo::ResnetForm::batch_norm}, Where::current());
  Workload w;
  w.graph = model.graph;
  w.optimizer = optim::sgd(1e-3, {.momentum = 0.9});
  w.inputs = {{"image", floats("images", model.input.shape())}};
  if (mode == BenchMode::infer) return w;
  w.loss = w.graph.value(model.loss.id());
  w.inputs["labels"] = integers("labels", {batch}, 1000);
  return w;
}

Workload whisper(BenchMode mode) {
  const zoo::WhisperConfig config = zoo::WhisperConfig::tiny();
  const zoo::WhisperSizes sizes{.batch = 1, .frames = 3000};
  Workload w;
  w.optimizer = optim::adam(1e-4);
  w.inputs = {{"mel", floats("mel", {sizes.batch, config.n_mels, sizes.frames})}};
  if (mode == BenchMode::infer) {
    w.graph = zoo::whisper_encoder(config, sizes);
    return w;
  }
  const zoo::Model model = zoo::whisper_training(config, sizes);
  w.graph = model.graph;
  w.loss = w.graph.value(model.loss.id());
  w.inputs["labels"] = integers("labels", model.labels.shape(), 64);
  return w;
}

}  // namespace

Workload transformer_workload(const TransformerConfig& config, BenchMode mode) {
  return of_model(transformer(config), "tokens", config.vocabulary,
                  optim::adamw(1e-4, {.weight_decay = 0.01}), mode);
}

namespace {

Workload smollm2(std::int64_t batch, std::int64_t sequence, BenchMode mode) {
  const zoo::LlamaConfig config = zoo::smollm2_135m();
  return of_model(zoo::llama(config, {.batch = batch, .sequence = sequence}), "tokens",
                  config.vocabulary, optim::adamw(1e-4, {.weight_decay = 0.01}), mode);
}

bool is_file(std::string_view name) { return name.ends_with(".onnx"); }

// Integers are tokens, or masks that let everything through.
Literal made_up(const std::string& name, const Type& type) {
  if (is_float(type.dtype)) return floats(name, type.shape);
  return Literal::ints(type.shape,
                       std::vector<std::int64_t>(static_cast<std::size_t>(type.shape.numel()), 1),
                       type.dtype);
}

Workload imported(std::string_view file, BenchMode mode) {
  const bool is_training = mode == BenchMode::train;
  onnx::Model model = onnx::import_model(std::filesystem::path(file), {.training = is_training});
  Workload w;
  w.graph = std::move(model.graph);
  w.weights = std::move(model.weights);
  w.optimizer = optim::adam(1e-4);
  for (const Leaf& leaf : w.graph.leaves(LeafKind::input))
    w.inputs.emplace(leaf.name, made_up(leaf.name, leaf.value.type()));
  if (!is_training) return w;
  const auto [name, output] = w.graph.outputs().at(0);
  w.graph = only_output(w.graph, name);
  w.loss = mean(square(w.graph.output(name)));
  return w;
}

using Maker = std::function<Workload(BenchMode)>;
const std::vector<std::pair<std::string, Maker>>& makers() {
  static const std::vector<std::pair<std::string, Maker>> all{
      {"mlp16",
       [](BenchMode mode) {
         return of_model(zoo::mlp({.batch = 16, .inputs = 128, .hidden = {64, 64}, .classes = 10}),
                         "x", 10, optim::sgd(0.01), mode);
       }},
      {"mlp32", [](BenchMode mode) { return small_mlp(32, mode); }},
      {"mlp128", [](BenchMode mode) { return small_mlp(128, mode); }},
      {"mlp_wide128", [](BenchMode mode) { return wide_mlp(128, mode); }},
      {"lenet64", [](BenchMode mode) { return lenet(64, mode); }},
      {"resnet18_b8",
       [](BenchMode mode) { return resnet(zoo::resnet18_training, zoo::resnet18, 8, mode); }},
      {"resnet50_b4",
       [](BenchMode mode) { return resnet(zoo::resnet50_training, zoo::resnet50, 4, mode); }},
      {"whisper_tiny", whisper},
      {"tfm8", [](BenchMode mode) { return transformer_workload({}, mode); }},
      {"smollm2_b1_s128", [](BenchMode mode) { return smollm2(1, 128, mode); }},
  };
  return all;
}

// Workloads whose sizes can be others than those of the name: "tfm8:layers=2,sequence=128".
using Sizes = std::map<std::string, std::int64_t, std::less<>>;
struct SizedMaker {
  Sizes usual;
  std::function<Workload(const Sizes&, BenchMode)> make;
};
const std::map<std::string, SizedMaker, std::less<>>& sized_makers() {
  static const SizedMaker lenets{
      {{"batch", 64}}, [](const Sizes& s, BenchMode mode) { return lenet(s.at("batch"), mode); }};
  static const SizedMaker transformers{
      {{"batch", 8}, {"layers", 8}, {"sequence", 256}}, [](const Sizes& s, BenchMode mode) {
        return transformer_workload(
            {.batch = s.at("batch"), .sequence = s.at("sequence"), .layers = s.at("layers")}, mode);
      }};
  static const std::map<std::string, SizedMaker, std::less<>> all{{"lenet64", lenets},
                                                                  {"tfm8", transformers}};
  return all;
}

Maker of_sizes(std::string_view name, std::string_view given) {
  const auto found = sized_makers().find(name);
  if (found == sized_makers().end())
    throw TypeError(fmt::format("the sizes of workload '{}' cannot be changed", name));
  Sizes sizes = found->second.usual;
  for (const std::string& part : comma_parts(std::string(given))) {
    const std::size_t sign = std::min(part.find('='), part.size());
    const auto size = sizes.find(part.substr(0, sign));
    if (size == sizes.end()) {
      std::vector<std::string> known;
      for (const auto& [key, value] : sizes) known.push_back(key);
      throw TypeError(fmt::format("workload '{}' has no size '{}'; it has {}", name,
                                  part.substr(0, sign), fmt::join(known, ", ")));
    }
    const std::string_view digits = std::string_view(part).substr(std::min(sign + 1, part.size()));
    constexpr std::int64_t kLargest = 1 << 20;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), size->second);
    if (error != std::errc() || end != digits.data() + digits.size() || size->second < 1 ||
        size->second > kLargest)
      throw TypeError(fmt::format("{} of workload '{}' must be a number from 1 to {}, got '{}'",
                                  size->first, name, kLargest, digits));
  }
  return [make = found->second.make, sizes](BenchMode mode) { return make(sizes, mode); };
}

Maker find(std::string_view name) {
  const std::size_t colon = name.find(':');
  const std::string_view known_as = name.substr(0, colon);
  for (const auto& [known, maker] : makers())
    if (known == known_as)
      return colon == name.npos ? maker : of_sizes(known, name.substr(colon + 1));
  throw TypeError(fmt::format("there is no workload '{}'{}", known_as,
                              did_you_mean(known_as, workload_names())));
}

// As the recorded models are filled.
Fill weight_fill(const std::string& workload, const std::string& name, const Shape& shape) {
  Fill fill{.name = fmt::format("bench:{}.{}", workload, name), .shape = shape};
  const bool vector = shape.rank() == 1;
  const double inputs = vector ? 1 : static_cast<double>(shape.numel() / shape[0]);
  fill.bound = vector ? 0.05 : std::sqrt(3 / inputs);
  if (vector && name.ends_with("weight")) {
    fill.bound = 0.2;
    fill.offset = 1;
  }
  if (name.find("embed") != std::string::npos || name == "tok.weight" || name == "pos.weight")
    fill.bound = 0.02 * std::sqrt(3.0);
  if (name.ends_with("bn3.weight")) {  // else the outputs of a deep residual net explode
    fill.bound = 0.05;
    fill.offset = 0.2;
  }
  fill.bound = static_cast<float>(fill.bound);
  return fill;
}

}  // namespace

std::vector<std::string> workload_names() {
  std::vector<std::string> names;
  for (const auto& [name, maker] : makers()) names.push_back(name);
  return names;
}

void require_workload(std::string_view name) {
  if (!is_file(name)) find(name);
}

Workload make_workload(std::string_view name, BenchMode mode) {
  Workload w = is_file(name) ? imported(name, mode) : find(name)(mode);
  w.name = name;
  return w;
}

void set_weights(const Workload& workload, Session& session) {
  if (!workload.weights.names().empty()) {
    session.load_weights(workload.weights, {.strict = false});  // some may be of no output
    return;
  }
  for (const Leaf& leaf : workload.graph.leaves(LeafKind::parameter))
    session.set_parameter(leaf.name,
                          make(weight_fill(workload.name, leaf.name, leaf.value.shape())));
}

}  // namespace pantala::tools
