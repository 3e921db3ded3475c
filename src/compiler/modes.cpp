// The names of the ways to compile.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text.h"
#include "pantala/compile.h"
#include "pantala/error.h"

namespace pantala {

namespace {

std::size_t position(std::string_view what, std::string_view name,
                     const std::vector<std::string>& names) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end())
    throw TypeError(fmt::format("{} must be one of {}, got '{}'{}", what, fmt::join(names, ", "),
                                name, did_you_mean(name, names)));
  return static_cast<std::size_t>(found - names.begin());
}

}  // namespace

const std::vector<std::string>& rewrite_names() {
  static const std::vector<std::string> names = {"none", "greedy", "egraph"};
  return names;
}
const std::vector<std::string>& numerics_names() {
  static const std::vector<std::string> names = {"strict", "relaxed", "fast"};
  return names;
}

Rewrite rewrite_named(std::string_view name) {
  return static_cast<Rewrite>(position("rewrite", name, rewrite_names()));
}
Numerics numerics_named(std::string_view name) {
  return static_cast<Numerics>(position("numerics", name, numerics_names()));
}

std::int64_t memory_limit_named(std::string_view text) {
  if (text.empty()) return 0;
  const std::optional<std::int64_t> bytes = byte_size(text);
  if (!bytes || *bytes == 0)
    throw TypeError(
        fmt::format("a memory limit must be a size such as 500M or 2G, got '{}'", text));
  return *bytes;
}

}  // namespace pantala
