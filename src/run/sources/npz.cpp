// Arrays by the names that people give them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "pantala/error.h"
#include "run/sources/labels.h"
#include "run/sources/source.h"

namespace pantala::run {

namespace {

SourceSets open_npz(const SourceRequest& request) {
  const std::filesystem::path path = request.path;
  const std::vector<std::string> names = data::npz_names(path);
  const auto has = [&](const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  const auto read = [&](const std::string& x, const std::string& y) {
    return data::make_dataset(data::read_npz(path, x), data::read_npz(path, y),
                              fmt::format("{} ({}, {})", path.filename().string(), x, y));
  };
  if (has("x_train") && has("y_train"))
    return {.train = read("x_train", "y_train"),
            .test = has("x_test") && has("y_test") ? std::optional(read("x_test", "y_test"))
                                                   : std::nullopt};
  if (has("x") && has("y")) return {.train = read("x", "y")};
  throw TypeError(
      fmt::format("{}: has the arrays {}; expected x and y, or x_train and y_train (and x_test and "
                  "y_test)",
                  path.string(), fmt::join(names, ", ")));
}

// Those of the test set, if there is one.
data::Dataset open_npz_items(const SourceRequest& request) {
  const std::filesystem::path path = request.path;
  const std::vector<std::string> names = data::npz_names(path);
  for (const char* known : {"x_test", "x", "x_train"})
    if (std::find(names.begin(), names.end(), known) != names.end())
      return unlabeled(data::read_npz(path, known), *request.facts,
                       fmt::format("{} ({})", path.filename().string(), known));
  throw TypeError(fmt::format("{}: has the arrays {}; expected x or x_test", path.string(),
                              fmt::join(names, ", ")));
}

}  // namespace

Source npz_source() {
  return {.name = "npz",
          .argument = "FILE",
          .help = "arrays x and y, or x_train, y_train, x_test and y_test",
          .ending = ".npz",
          .open = open_npz,
          .open_items = open_npz_items,
          .labels_may_lack = true};
}

}  // namespace pantala::run
