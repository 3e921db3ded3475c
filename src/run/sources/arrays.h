// Files that hold arrays by name: what the sources of such files have in common.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "run/sources/source.h"

namespace pantala::run {

struct NamedArrays {
  std::string path;
  std::vector<std::string> names;
  std::function<data::Array(const std::string&)> read;
};

// x and y, or x_train and y_train with x_test and y_test if they are there. TypeError that lists
// the arrays if there are neither.
SourceSets open_arrays(const NamedArrays& file);
// x_test, x or x_train, whichever comes first; labels beside it are read if they are wanted.
data::Dataset open_array_items(const NamedArrays& file, const SourceRequest& request);

}  // namespace pantala::run
