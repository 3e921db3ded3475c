// Small helpers for messages.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pantala {

// The candidate nearest to `name` by edit distance, or "" if none is near enough to be a likely
// slip.
std::string nearest(std::string_view name, std::span<const std::string> candidates);
// "; did you mean 'relu'?" or "".
std::string did_you_mean(std::string_view name, std::span<const std::string> candidates);
// The shortest decimal text that reads back to the same double; "inf", "-inf", "nan".
std::string exact(double value);
// A quoted string with escapes for quotes, backslashes and control characters.
std::string in_quotes(std::string_view text);
// "1 input", "2 inputs".
std::string counted(std::size_t count, std::string_view noun);
// "fc.*, layer4.*" in its parts, without the spaces around them.
std::vector<std::string> comma_parts(std::string_view text);
// "500M", "1.5G", "64KiB", "4096": K, M, G, T are powers of 1000, Ki, Mi, Gi, Ti powers of 1024, a
// B may follow. Nothing for a text that is no size, or one that is negative or beyond 2^62.
std::optional<std::int64_t> byte_size(std::string_view text);
std::string base_name(std::string_view path);
// Shell-style match: * stands for any run of characters, ? for one.
bool glob_match(std::string_view pattern, std::string_view text);

}  // namespace pantala
