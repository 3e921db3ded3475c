#include "run/sources/source.h"

namespace pantala::run {

Source idx_source() {
  return {.name = "idx",
          .argument = "DIR",
          .help = "the four files of the MNIST family",
          .open = [](const SourceRequest& request) {
            data::TrainTest sets = data::read_idx_folder(request.path);
            return SourceSets{std::move(sets.train), std::move(sets.test)};
          }};
}

}  // namespace pantala::run
