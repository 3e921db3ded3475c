// Names by pattern, as a config gives them: "fc.*, layer4.?.conv1.*".
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pantala::run {

// As one text, which comma_parts() takes apart.
std::string join_patterns(std::span<const std::string> patterns);

bool matches_any(std::span<const std::string> patterns, std::string_view name);

// "; did you mean 'layer1.*'?" or "": the nearest of the names and of the patterns "part.*" for
// their beginnings.
std::string pattern_hint(std::string_view pattern, std::span<const std::string> names);

}  // namespace pantala::run
