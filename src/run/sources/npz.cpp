#include "run/sources/arrays.h"

namespace pantala::run {

namespace {

NamedArrays open_file(const std::string& path) {
  return {path, data::npz_names(path),
          [path](const std::string& name) { return data::read_npz(path, name); }};
}

}  // namespace

Source npz_source() {
  return {.name = "npz",
          .argument = "FILE",
          .help = "arrays x and y, or x_train, y_train, x_test and y_test",
          .endings = {".npz"},
          .open = [](const SourceRequest& request) { return open_arrays(open_file(request.path)); },
          .open_items =
              [](const SourceRequest& request) {
                return open_array_items(open_file(request.path), request);
              },
          .labels_may_be_missing = true};
}

}  // namespace pantala::run
