#include "run/sources/labels.h"
#include "run/sources/source.h"

namespace pantala::run {

Source images_source() {
  return {.name = "images",
          .argument = "DIR",
          .help = "PNG and JPEG files, a folder per class, or these in train and val",
          .is_own_folder = [](const std::filesystem::path&) { return true; },
          .open =
              [](const SourceRequest& request) {
                data::ImageSets sets =
                    data::read_image_sets(request.path, image_options(request.config));
                return SourceSets{std::move(sets.train), std::move(sets.test)};
              },
          .open_items =
              [](const SourceRequest& request) {
                const data::Dataset set =
                    data::read_images(request.path, image_options(request.config));
                return request.truth ? with_folder_labels(set, *request.facts) : set;
              },
          .items_note = "with images anywhere in it"};
}

}  // namespace pantala::run
