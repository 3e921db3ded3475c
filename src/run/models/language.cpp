// Language models over tokens [sequence].
#include "run/models/model.h"

namespace pantala::run {

ModelFamily language_models() {
  return {
      .about = "For tokens: ",
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
                .make = [preset](const RunConfig&, const ModelShape& shape, std::int64_t batch,
                                 Phase phase) { return make_preset(preset, shape, batch, phase); }};
          }};
}

}  // namespace pantala::run
