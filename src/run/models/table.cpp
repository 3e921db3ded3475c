// The table of models, and what is derived from it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "base/text.h"
#include "pantala/error.h"
#include "run/models/model.h"

namespace pantala::run {

// One file each. Help lists them in this order.
ModelFamily vector_models();
ModelFamily image_models();
ModelFamily sound_models();
ModelFamily language_models();
ModelRow onnx_file_model();

namespace {

const std::vector<ModelFamily>& families() {
  static const std::vector<ModelFamily> all = {vector_models(), image_models(), sound_models(),
                                               language_models()};
  return all;
}

const std::vector<ModelRow>& rows() {
  static const std::vector<ModelRow> all = [] {
    std::vector<ModelRow> list;
    for (const ModelFamily& family : families())
      for (const zoo::Preset& preset : zoo::presets())
        if (family.holds(preset)) list.push_back(family.row(preset));
    return list;
  }();
  return all;
}

}  // namespace

const ModelRow& model_of(const RunConfig& config) {
  static const ModelRow of_file = onnx_file_model();
  if (is_from_file(config)) return of_file;
  for (const ModelRow& row : rows())
    if (row.name == config.model.name) return row;
  throw TypeError(fmt::format("there is no model '{}'{}", config.model.name,
                              did_you_mean(config.model.name, trainable_models())));
}

ModelFactory model_factory(const RunConfig& config, const ModelShape& shape) {
  return [config, shape](std::int64_t batch, Phase phase) {
    return model_of(config).make(config, shape, batch, phase);
  };
}

const std::vector<std::string>& trainable_models() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> names;
    for (const ModelRow& row : rows()) names.push_back(row.name);
    std::sort(names.begin(), names.end());
    return names;
  }();
  return all;
}

std::string model_help() {
  std::vector<std::string> parts;
  for (const ModelFamily& family : families()) {
    std::vector<std::string> said;
    for (const zoo::Preset& preset : zoo::presets())
      if (family.holds(preset) && !preset.in_help.empty()) said.push_back(preset.in_help);
    std::sort(said.begin(), said.end());
    parts.push_back(fmt::format("{}{}", family.about, fmt::join(said, ", ")));
  }
  return fmt::format("{}", fmt::join(parts, ". "));
}

bool is_from_file(const RunConfig& config) { return !config.model.from.empty(); }

std::string model_title(const RunConfig& config) {
  return is_from_file(config) ? std::filesystem::path(config.model.from).stem().string()
                              : config.model.name;
}

TrainableGraph make_preset(const zoo::Preset& preset, const ModelShape& shape, std::int64_t batch,
                           Phase phase, const zoo::LlamaSizes& sizes) {
  return preset.make({.batch = batch,
                      .item = Shape(shape.item),
                      .classes = shape.classes,
                      .training = phase == Phase::training,
                      .sizes = sizes});
}

void check_learns_classes(const RunConfig& config, zoo::Task task, const std::string& data) {
  if (task == zoo::Task::regression)
    throw TypeError(
        fmt::format("model {} tells classes apart, but the labels of {} are numbers{}; mlp learns "
                    "numbers",
                    config.model.name, data, config.model.task == "auto" ? "" : " (model.task)"));
}

}  // namespace pantala::run
