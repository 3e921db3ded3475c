#include "tools/train/model.h"

#include <fmt/format.h>

#include <algorithm>

#include "pantala/error.h"
#include "pantala/zoo.h"
#include "pantala/zoo/presets.h"
#include "tools/train/onnx_model.h"

namespace pantala::tools {

namespace {

// In the order of nn::Activation.
const std::vector<std::string> kActivations = {"identity", "relu",      "leaky_relu", "elu",
                                               "gelu",     "gelu_tanh", "silu",       "mish",
                                               "tanh",     "sigmoid"};

nn::Activation activation_of(const std::string& name) {
  const auto found = std::find(kActivations.begin(), kActivations.end(), name);
  return static_cast<nn::Activation>(found - kActivations.begin());
}

Graph mlp_graph(const RunConfig& config, const ModelShape& shape, std::int64_t batch) {
  zoo::MlpConfig mlp{.batch = batch,
                     .inputs = shape.item.at(0),
                     .hidden = {},
                     .classes = shape.classes,
                     .activation = activation_of(config.model.activation),
                     .task = shape.task,
                     .targets = shape.targets,
                     .target_scale = shape.target_scale};
  std::vector<std::int64_t> hidden;
  for (const double size : config.model.hidden) hidden.push_back(static_cast<std::int64_t>(size));
  mlp.hidden = IntList(hidden);
  return zoo::mlp(mlp).graph;
}

Graph preset_graph(const RunConfig& config, const ModelShape& shape, std::int64_t batch,
                   Phase phase) {
  return zoo::preset(config.model.name)
      .make({.batch = batch,
             .item = Shape(shape.item),
             .classes = shape.classes,
             .training = phase == Phase::training})
      .graph;
}

// A classifier of images [channels, height, width].
bool takes_images(const zoo::Preset& preset) {
  return is_float(preset.item.dtype) && preset.item.shape.rank() == 3;
}

// A language model over tokens [sequence].
bool takes_tokens(const zoo::Preset& preset) {
  return is_integer(preset.item.dtype) && preset.item.shape.rank() == 1;
}

// A listener to spectrograms [mels, frames].
bool takes_sounds(const zoo::Preset& preset) {
  return is_float(preset.item.dtype) && preset.item.shape.rank() == 2;
}

std::vector<std::int64_t> sound_item(const RunConfig& config, const Shape& item) {
  const Shape& usual = zoo::preset(config.model.name).item.shape;
  if (item.rank() != 2 || item.numel() == 0 || item[1] > usual[1])
    throw TypeError(fmt::format(
        "model {} takes spectrograms [mels, frames] of up to {} frames; the items of the data set "
        "are {}",
        config.model.name, usual[1], item.str()));
  return item.vec();
}

}  // namespace

const std::vector<std::string>& activation_names() { return kActivations; }

const std::vector<std::string>& trainable_models() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> names = {"mlp"};
    for (const zoo::Preset& preset : zoo::presets())
      if (takes_images(preset) || takes_sounds(preset) || takes_tokens(preset))
        names.push_back(preset.name);
    std::sort(names.begin(), names.end());
    return names;
  }();
  return all;
}

std::int64_t model_vocabulary(const RunConfig& config) {
  const zoo::Preset& preset = zoo::preset(config.model.name);
  return takes_tokens(preset) ? preset.classes : 0;
}

bool learns_positions(const RunConfig& config) {
  return !is_from_file(config) && takes_sounds(zoo::preset(config.model.name));
}

std::int64_t label_positions(const RunConfig& config, const Shape& item) {
  const zoo::Request request{.batch = 1, .item = Shape(model_item(config, item))};
  return zoo::preset(config.model.name).make(request).labels.shape().numel();
}

std::vector<std::int64_t> model_item(const RunConfig& config, const Shape& item) {
  if (is_from_file(config)) return file_model_item(config, item);
  if (config.model.name == "mlp") {
    if (item.numel() == 0) throw TypeError("the items of the data set are empty");
    return {item.numel()};
  }
  if (takes_sounds(zoo::preset(config.model.name))) return sound_item(config, item);
  const bool image = (item.rank() == 2 || item.rank() == 3) && item.numel() > 0;
  const std::int64_t height = image ? item[item.rank() - 2] : 0,
                     width = image ? item[item.rank() - 1] : 0;
  constexpr std::int64_t kSmallest = 4;  // lenet halves it twice
  if (config.model.name == "lenet" && (!image || height != width || height < kSmallest))
    throw TypeError(fmt::format(
        "model lenet takes square images [size, size] or [channels, size, size] from {} x {} "
        "pixels on; the items of the data set are {}; mlp takes any",
        kSmallest, kSmallest, item.str()));
  if (!image)
    throw TypeError(
        fmt::format("model {} takes images [height, width] or [channels, height, width] from 1 x 1 "
                    "pixels on; the items of the data set are {}; mlp takes any",
                    config.model.name, item.str()));
  return {item.rank() == 3 ? item[0] : 1, height, width};
}

void check_task(const RunConfig& config, zoo::Task task, const std::string& data) {
  if (is_from_file(config)) return check_file_model_task(config, task, data);
  if (task == zoo::Task::regression && config.model.name != "mlp")
    throw TypeError(
        fmt::format("model {} tells classes apart, but the labels of {} are numbers{}; mlp learns "
                    "numbers",
                    config.model.name, data, config.model.task == "auto" ? "" : " (model.task)"));
}

std::string prediction_output(const ModelShape& shape) {
  return shape.task == zoo::Task::regression ? "prediction" : "logits";
}

ModelFactory model_factory(const RunConfig& config, const ModelShape& shape) {
  return [config, shape](std::int64_t batch, Phase phase) {
    if (is_from_file(config)) return file_model_graph(config, shape, batch, phase);
    return config.model.name == "mlp" ? mlp_graph(config, shape, batch)
                                      : preset_graph(config, shape, batch, phase);
  };
}

std::string data_input(const RunConfig& config, const ModelShape& shape) {
  const Graph graph = model_factory(config, shape)(config.batch_size, Phase::evaluation);
  return graph.leaves(LeafKind::input).at(0).name;
}

}  // namespace pantala::tools
