// Language models over tokens [sequence].
#include "run/models/model.h"

namespace pantala::run {

zoo::LlamaSizes model_sizes(const RunConfig& config) {
  const auto& model = config.model;
  return {.width = model.width,
          .layers = model.layers,
          .heads = model.heads,
          .kv_heads = model.kv_heads,
          .feed_forward = model.feed_forward};
}

zoo::LlamaConfig llama_of(const RunConfig& config) {
  return zoo::resized(zoo::llama_config(config.model.name), model_sizes(config));
}

ModelFamily language_models() {
  return {.about = "For tokens: ",
          .holds =
              [](const zoo::Preset& preset) {
                return is_integer(preset.item.dtype) && preset.item.shape.rank() == 1;
              },
          .row =
              [](const zoo::Preset& preset) {
                return ModelRow{
                    .name = preset.name,
                    .vocabulary = preset.classes,
                    .item = [](const RunConfig&, const Shape& item) { return item.vec(); },
                    .check_task = check_learns_classes,
                    .make =
                        [preset](const RunConfig& config, const ModelShape& shape,
                                 std::int64_t batch, Phase phase) {
                          return make_preset(preset, shape, batch, phase, model_sizes(config));
                        }};
              }};
}

}  // namespace pantala::run
