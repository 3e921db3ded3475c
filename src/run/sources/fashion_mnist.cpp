#include "run/sources/source.h"

namespace pantala::run {

Source fashion_mnist_source() {
  return {.name = "fashion-mnist", .argument = "", .help = "", .open = [](const SourceRequest&) {
            data::TrainTest sets = data::fashion_mnist();
            return SourceSets{std::move(sets.train), std::move(sets.test)};
          }};
}

}  // namespace pantala::run
