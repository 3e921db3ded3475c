#include "io/json.h"

#include <set>
#include <vector>

#include "base/text.h"
#include "io/file.h"

namespace pantala::io {

template <class Document>
Document parse_json(std::string_view text, std::string_view file, int max_depth) {
  // The parser would keep the last of several equal keys; the keys that were seen stand here, one
  // set per open object.
  std::vector<std::set<std::string>> keys;
  const auto check = [&](int depth, typename Document::parse_event_t event, Document& value) {
    if (depth > max_depth)
      throw ParseError(fmt::format("{}: nested deeper than {} levels", file, max_depth));
    if (event == Document::parse_event_t::object_start) keys.emplace_back();
    if (event == Document::parse_event_t::object_end) keys.pop_back();
    if (event != Document::parse_event_t::key) return true;
    const auto& key = value.template get_ref<const std::string&>();
    if (!keys.back().insert(key).second)
      throw ParseError(fmt::format("{}: the key {} appears twice", file, pantala::quoted(key)));
    return true;
  };
  try {
    return Document::parse(text, check);
  } catch (const nlohmann::json::parse_error& error) {
    throw ParseError(fmt::format("{}: byte {}: not valid JSON", file, error.byte));
  } catch (const nlohmann::json::exception& error) {
    throw ParseError(fmt::format("{}: not valid JSON: {}", file, error.what()));
  }
}

template <class Document>
Document read_json(const std::filesystem::path& path, int max_depth) {
  return parse_json<Document>(read_file(path), path.string(), max_depth);
}

template Json parse_json(std::string_view, std::string_view, int);
template OrderedJson parse_json(std::string_view, std::string_view, int);
template Json read_json(const std::filesystem::path&, int);
template OrderedJson read_json(const std::filesystem::path&, int);

}  // namespace pantala::io
