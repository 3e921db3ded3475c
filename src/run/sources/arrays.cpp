// Arrays by the names that people give them.
#include "run/sources/arrays.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>

#include "base/text.h"
#include "pantala/error.h"
#include "run/sources/labels.h"

namespace pantala::run {

namespace {

struct NamedArrays {
  std::string path;
  std::vector<std::string> names;
  std::function<data::Array(const std::string&)> read;
};

bool has(const NamedArrays& file, const std::string& name) {
  return std::find(file.names.begin(), file.names.end(), name) != file.names.end();
}

data::Dataset read_pair(const NamedArrays& file, const std::string& x, const std::string& y) {
  return data::make_dataset(file.read(x), file.read(y),
                            fmt::format("{} ({}, {})", base_name(file.path), x, y));
}

// A file of hostile names must not make a message of megabytes.
std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 20;
  const auto end = names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), kShown));
  return fmt::format("{}{}", fmt::join(names.begin(), end, ", "),
                     names.size() > kShown ? ", ..." : "");
}

[[noreturn]] void refuse(const NamedArrays& file, const std::string& expected) {
  throw TypeError(
      fmt::format("{}: has the arrays {}; expected {}", file.path, listed(file.names), expected));
}

SourceSets open_arrays(const NamedArrays& file) {
  if (has(file, "x_train") && has(file, "y_train"))
    return {.train = read_pair(file, "x_train", "y_train"),
            .test = has(file, "x_test") && has(file, "y_test")
                        ? std::optional(read_pair(file, "x_test", "y_test"))
                        : std::nullopt};
  if (has(file, "x") && has(file, "y")) return {.train = read_pair(file, "x", "y")};
  refuse(file, "x and y, or x_train and y_train (and x_test and y_test)");
}

data::Dataset open_array_items(const NamedArrays& file, const SourceRequest& request) {
  for (const auto& [x, y] : {std::pair{"x_test", "y_test"}, {"x", "y"}, {"x_train", "y_train"}}) {
    if (!has(file, x)) continue;
    if (request.truth && has(file, y)) return read_pair(file, x, y);
    return unlabeled(file.read(x), *request.facts, fmt::format("{} ({})", base_name(file.path), x));
  }
  refuse(file, "x or x_test");
}

}  // namespace

Source array_source(const std::string& name, const std::string& help, const ArrayFormat& format) {
  const auto opened = [format](const std::string& path) {
    return NamedArrays{path, format.names(path), [format, path](const std::string& array) {
                         return format.read(path, array);
                       }};
  };
  return {
      .name = name,
      .argument = "FILE",
      .help = help,
      .endings = {"." + name},
      .open = [opened](const SourceRequest& request) { return open_arrays(opened(request.path)); },
      .open_items =
          [opened](const SourceRequest& request) {
            return open_array_items(opened(request.path), request);
          },
      .labels_may_be_missing = true};
}

}  // namespace pantala::run
