// Files that hold arrays by name: what the sources of such files have in common.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "run/sources/source.h"

namespace pantala::run {

// How such files are read.
struct ArrayFormat {
  std::vector<std::string> (*names)(const std::filesystem::path& path);
  data::Array (*read)(const std::filesystem::path& path, const std::string& name);
};

// Trains from x and y, or from x_train and y_train with x_test and y_test if they are there;
// predicts from x_test, x or x_train, whichever comes first, with the labels beside it if they are
// wanted. TypeError that lists the arrays if none of them is there.
Source array_source(const std::string& name, const std::string& help, const ArrayFormat& format);

}  // namespace pantala::run
