#include "run/sources/arrays.h"

namespace pantala::run {

Source npz_source() {
  return array_source("npz", "arrays x and y, or x_train, y_train, x_test and y_test",
                      {.names = data::npz_names, .read = data::read_npz});
}

}  // namespace pantala::run
