// Classifiers of images [channels, height, width].
#include <fmt/format.h>

#include "pantala/error.h"
#include "run/models/model.h"

namespace pantala::run {

namespace {

std::vector<std::int64_t> image_item(const zoo::Preset& preset, const Shape& item) {
  const bool is_image = (item.rank() == 2 || item.rank() == 3) && item.numel() > 0;
  std::vector<std::int64_t> image = item.vec();
  if (item.rank() == 2) image.insert(image.begin(), 1);
  if (!is_image || (preset.accepts && !preset.accepts(Shape(image))))
    throw TypeError(fmt::format(
        "model {} takes {}; the items of the data set are {}; mlp takes any", preset.name,
        preset.takes.empty() ? "images [height, width] or [channels, height, width] "
                               "from 1 x 1 pixels on"
                             : preset.takes,
        item.str()));
  return image;
}

}  // namespace

ModelFamily image_models() {
  return {
      .about = "For images: ",
      .holds =
          [](const zoo::Preset& preset) {
            return is_float(preset.item.dtype) && preset.item.shape.rank() == 3;
          },
      .row =
          [](const zoo::Preset& preset) {
            return ModelRow{
                .name = preset.name,
                .item = [preset](const RunConfig&,
                                 const Shape& item) { return image_item(preset, item); },
                .check_task = check_learns_classes,
                .make = [preset](const RunConfig&, const ModelShape& shape, std::int64_t batch,
                                 Phase phase) { return make_preset(preset, shape, batch, phase); }};
          }};
}

}  // namespace pantala::run
