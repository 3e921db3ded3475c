// Models that a run can train. A model is one row; rows are made from the zoo's table of presets by
// families, which say what their models take (images, spectrograms, tokens, anything), one file
// each, and there is one row for ONNX files. A row makes the model for any batch size and hands
// back its tensors.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "pantala/trainer.h"
#include "pantala/weights.h"
#include "pantala/zoo.h"
#include "pantala/zoo/presets.h"
#include "run/core/config.h"

namespace pantala::run {

// What a model must know of its data.
struct ModelShape {
  std::vector<std::int64_t> item;  // of one item, as the model takes it
  zoo::Task task = zoo::Task::classification;
  std::int64_t classes = 0;  // of classification
  Shape positions = {};      // of an item, with a class each; no axes: it has one class
  metrics::Kind measured = metrics::Kind::classes;
  std::int64_t targets = 0;  // of regression, as what follows
  zoo::TargetScale target_scale = {};
};

struct ModelRow {
  std::string name;             // a value of model.name
  std::int64_t vocabulary = 0;  // 0: it is no language model
  // Of models that take tokens among other things: how many there are; 0: these are no items of it.
  std::function<std::int64_t(const RunConfig&)> token_count = {};
  // Whether items stay the whole numbers that they are; none: they become f32.
  std::function<bool(const RunConfig&)> takes_integers = {};
  // How items of this shape must be reshaped for the model. TypeError if they do not fit.
  std::function<std::vector<std::int64_t>(const RunConfig&, const Shape& item)> item;
  // The positions of such an item, of models that learn a class for each, other than of tokens:
  // what the labels of an item must be. No axes: it has one class. `labels` is what the data has.
  std::function<Shape(const RunConfig&, const Shape& item, const Shape& labels)> positions = {};
  // TypeError if the model does not learn this; `data` is the name of the data.
  std::function<void(const RunConfig&, zoo::Task, const std::string& data)> check_task;
  std::function<TrainableGraph(const RunConfig&, const ModelShape&, std::int64_t batch, Phase)>
      make;
};

struct ModelFamily {
  std::string about;  // before what the presets say of themselves: "For images: "
  std::function<bool(const zoo::Preset&)> holds;
  std::function<ModelRow(const zoo::Preset&)> row;
};

// A row of a prediction with a class for each position is [positions, classes]; where the model's
// own output is in another order, the prediction is an output of this name beside it.
inline constexpr std::string_view kByPosition = "by_position";

// The config's model. TypeError with the nearest name.
const ModelRow& model_of(const RunConfig& config);
ModelFactory model_factory(const RunConfig& config, const ModelShape& shape);

// --- what the keys of the config say
const std::vector<std::string>& trainable_models();  // sorted
std::string model_help();

// --- models from files (model.from)
bool is_from_file(const RunConfig& config);
// What the file has for the model's parameters and states, and more; a warning for all that is not
// trained as PyTorch would.
Weights file_model_weights(const RunConfig& config, const ModelShape& shape);
// The model's name for titles and folders: that of the file or of the zoo.
std::string model_title(const RunConfig& config);

// --- language models
// What model.width and the like say.
zoo::LlamaSizes model_sizes(const RunConfig& config);
// The config's model in these sizes, with its own vocabulary. TypeError if they do not fit
// together, or the model is none of the Llama family.
zoo::LlamaConfig llama_of(const RunConfig& config);

// --- for the families
// The preset's model with the shape's item and classes.
TrainableGraph make_preset(const zoo::Preset& preset, const ModelShape& shape, std::int64_t batch,
                           Phase phase, const zoo::LlamaSizes& sizes = {});
// TypeError unless classes are learnt.
void check_learns_classes(const RunConfig& config, zoo::Task task, const std::string& data);

}  // namespace pantala::run
