#include "run/sources/arrays.h"

namespace pantala::run {

namespace {

NamedArrays open_file(const std::string& path) {
  return {path, data::safetensors_names(path),
          [path](const std::string& name) { return data::read_safetensors(path, name); }};
}

}  // namespace

Source safetensors_source() {
  return {.name = "safetensors",
          .argument = "FILE",
          .help = "tensors with the names of npz",
          .endings = {".safetensors"},
          .open = [](const SourceRequest& request) { return open_arrays(open_file(request.path)); },
          .open_items =
              [](const SourceRequest& request) {
                return open_array_items(open_file(request.path), request);
              },
          .labels_may_be_missing = true};
}

}  // namespace pantala::run
