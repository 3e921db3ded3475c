#include "run/sources/arrays.h"

namespace pantala::run {

Source safetensors_source() {
  return array_source("safetensors", "tensors with the names of npz",
                      {.names = data::safetensors_names, .read = data::read_safetensors});
}

}  // namespace pantala::run
