// Listeners to spectrograms [mels, frames], which learn a class for every position of their output.
#include <fmt/format.h>

#include "pantala/error.h"
#include "run/models/model.h"

namespace pantala::run {

namespace {

std::vector<std::int64_t> sound_item(const zoo::Preset& preset, const Shape& item) {
  const std::int64_t frames = preset.item.shape[1];
  if (item.rank() != 2 || item.numel() == 0 || item[1] > frames)
    throw TypeError(fmt::format(
        "model {} takes spectrograms [mels, frames] of up to {} frames; the items of the data set "
        "are {}",
        preset.name, frames, item.str()));
  return item.vec();
}

}  // namespace

ModelFamily sound_models() {
  return {
      .about = "For spectrograms [mels, frames] with a class for every other frame: ",
      .holds =
          [](const zoo::Preset& preset) {
            return is_float(preset.item.dtype) && preset.item.shape.rank() == 2;
          },
      .row =
          [](const zoo::Preset& preset) {
            return ModelRow{
                .name = preset.name,
                .item = [preset](const RunConfig&,
                                 const Shape& item) { return sound_item(preset, item); },
                .positions =
                    [preset](const RunConfig&, const Shape& item, const Shape&) {
                      return Shape{preset.positions(Shape(sound_item(preset, item)))};
                    },
                .check_task = check_learns_classes,
                .make = [preset](const RunConfig&, const ModelShape& shape, std::int64_t batch,
                                 Phase phase) { return make_preset(preset, shape, batch, phase); }};
          }};
}

}  // namespace pantala::run
