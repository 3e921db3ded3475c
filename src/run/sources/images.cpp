#include "run/sources/source.h"

namespace pantala::run {

Source images_source() {
  return {.name = "images",
          .argument = "DIR",
          .help = "PNG and JPEG files, a folder per class, or these in train and val",
          .open =
              [](const SourceRequest& request) {
                data::ImageSets sets =
                    data::read_image_sets(request.path, image_options(request.config));
                return SourceSets{std::move(sets.train), std::move(sets.test)};
              },
          .open_items =
              [](const SourceRequest& request) {
                return data::read_images(request.path, image_options(request.config));
              },
          .items_note = "with images anywhere in it"};
}

}  // namespace pantala::run
