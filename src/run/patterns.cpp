#include "run/core/patterns.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/text.h"

namespace pantala::run {

std::string join_patterns(std::span<const std::string> patterns) {
  return fmt::format("{}", fmt::join(patterns, ","));
}

bool matches_any(std::span<const std::string> patterns, std::string_view name) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return glob_match(pattern, name); });
}

std::string pattern_hint(std::string_view pattern, std::span<const std::string> names) {
  std::set<std::string> known(names.begin(), names.end());
  for (const std::string& name : names)
    for (std::size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1))
      known.insert(name.substr(0, dot) + ".*");
  return did_you_mean(pattern, std::vector(known.begin(), known.end()));
}

}  // namespace pantala::run
