// The models of the zoo as the trainer wants them: a graph for any batch size, made from the config
// and from what the data look like.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pantala/trainer.h"
#include "pantala/zoo.h"
#include "tools/train/config.h"

namespace pantala::tools {

// Names of nn::Activation.
const std::vector<std::string>& activation_names();

// mlp, and the zoo's models of images, sounds and language; sorted.
const std::vector<std::string>& trainable_models();

// What a model must know of its data.
struct ModelShape {
  std::vector<std::int64_t> item;  // of one item, as the model takes it
  zoo::Task task = zoo::Task::classification;
  std::int64_t classes = 0;  // of classification
  bool by_position = false;  // every position of an item has a class of its own
  std::int64_t targets = 0;  // of regression, as what follows
  zoo::TargetScale target_scale;
};

// How items of this shape must be reshaped for the config's model: flat for mlp, [channels, height,
// width] for images, [mels, frames] for sounds. TypeError if they do not fit.
std::vector<std::int64_t> model_item(const RunConfig& config, const Shape& item);

// The vocabulary of the config's model; 0: it is no language model.
std::int64_t model_vocabulary(const RunConfig& config);

// Whether it learns a class for every position of an item, other than of tokens, and how many
// positions such an item has.
bool learns_positions(const RunConfig& config);
std::int64_t label_positions(const RunConfig& config, const Shape& item);

// TypeError if the config's model does not learn this.
void check_task(const RunConfig& config, zoo::Task task, const std::string& data);

// The output of the graph that says what the model makes of an item.
std::string prediction_output(const ModelShape& shape);
// The input of the graph that takes the items.
std::string data_input(const RunConfig& config, const ModelShape& shape);
ModelFactory model_factory(const RunConfig& config, const ModelShape& shape);

}  // namespace pantala::tools
