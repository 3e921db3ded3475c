// JSON documents from files that may be anything: what the parser or an access throws becomes a
// ParseError that names the file.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "pantala/error.h"

namespace pantala::io {

using Json = nlohmann::json;  // keys are sorted
// Keys as in the file; slow for objects with very many keys: not for files from strangers.
using OrderedJson = nlohmann::ordered_json;

// `file` is the name used in messages. A document that nests deeper than `max_depth` or repeats a
// key is refused.
template <class Document = Json>
Document parse_json(std::string_view text, std::string_view file, int max_depth = 32);
template <class Document = Json>
Document read_json(const std::filesystem::path& path, int max_depth = 32);

// Runs a function that takes values out of a document; a missing key or a value of another kind
// becomes a ParseError that starts with `where`.
template <class F>
auto extract(std::string_view where, F&& f) {
  try {
    return f();
  } catch (const nlohmann::json::exception& error) {
    const std::string_view text = error.what();
    // "[json.exception.type_error.302] type must be string, but is number"
    const std::size_t end = text.find("] ");
    throw ParseError(
        fmt::format("{}: {}", where, end == std::string_view::npos ? text : text.substr(end + 2)));
  }
}

}  // namespace pantala::io
