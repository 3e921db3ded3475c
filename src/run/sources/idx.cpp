#include <fmt/format.h>

#include "run/sources/source.h"

namespace pantala::run {

Source idx_source() {
  return {.name = "idx",
          .argument = "DIR",
          .help = "the four files of the MNIST family",
          .is_own_folder =
              [](const std::filesystem::path& folder) {
                constexpr const char* kImages = "train-images-idx3-ubyte";
                std::error_code ignored;
                return std::filesystem::exists(folder / kImages, ignored) ||
                       std::filesystem::exists(folder / fmt::format("{}.gz", kImages), ignored);
              },
          .open =
              [](const SourceRequest& request) {
                data::TrainTest sets = data::read_idx_folder(request.path);
                return SourceSets{std::move(sets.train), std::move(sets.test)};
              }};
}

}  // namespace pantala::run
