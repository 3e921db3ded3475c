// Configs as TOML. The only file that knows the TOML library.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "io/file.h"
#include "pantala/error.h"
#include "run/core/config.h"

namespace pantala::run {

namespace {

constexpr std::uint64_t kMaxConfigBytes = 1 << 20;
constexpr int kMostKeyParts = 16;

std::string place(std::string_view file, const toml::source_region& region) {
  return fmt::format("{}:{}:{}", file, region.begin.line, region.begin.column);
}

std::string kind_text(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::array:
      return "a list that is not of numbers alone";
    case toml::node_type::date:
      return "a date";
    case toml::node_type::time:
      return "a time";
    case toml::node_type::date_time:
      return "a date with a time";
    default:
      return "no value";
  }
}

std::optional<ConfigValue> list_value(const toml::array& array) {
  std::vector<std::string> texts;
  for (const toml::node& entry : array)
    if (const auto* text = entry.as_string()) texts.push_back(text->get());
  if (!texts.empty() && texts.size() == array.size()) return texts;
  std::vector<double> list;
  for (const toml::node& entry : array) {
    const std::optional<double> number =
        entry.is_number() ? entry.value<double>() : std::optional<double>{};
    if (!number) return {};
    list.push_back(*number);
  }
  return list;
}

std::optional<ConfigValue> value_of(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* flag = node.as_boolean()) return flag->get();
  if (const auto* integer = node.as_integer()) return std::int64_t{integer->get()};
  if (const auto* number = node.as_floating_point()) return number->get();
  if (const auto* array = node.as_array()) return list_value(*array);
  return {};
}

struct Found {
  Assignment assignment;
  toml::source_position position;
};

std::vector<std::string> section_names() {
  std::vector<std::string> names;
  for (const Key& key : config_keys())
    if (const std::string section = key.section();
        !section.empty() && (names.empty() || names.back() != section))
      names.push_back(section);
  return names;
}

void check_section(const std::string& name, const std::string& where) {
  const std::vector<std::string> known = section_names();
  if (std::find(known.begin(), known.end(), name) == known.end())
    throw ParseError(
        fmt::format("{}: unknown section '{}'{}", where, name, did_you_mean(name, known)));
}

// Whether the config has a list of tables of this name.
bool is_list_of_tables(const std::string& name) {
  return std::any_of(config_keys().begin(), config_keys().end(),
                     [&](const Key& key) { return key.entries && key.section() == name; });
}

void collect(const toml::table& table, const std::string& prefix, std::string_view file,
             std::vector<Found>& found);

// [[groups]]: the tables of a list, by number.
void collect_entries(const toml::array& list, const std::string& name, std::string_view file,
                     std::vector<Found>& found) {
  std::size_t number = 0;
  for (const toml::node& entry : list) {
    const toml::table* table = entry.as_table();
    if (!table || table->empty())
      throw ParseError(fmt::format("{}: {}.{} must be a table with keys, such as [[{}]]",
                                   place(file, entry.source()), name, number, name));
    collect(*table, fmt::format("{}.{}.", name, number++), file, found);
  }
}

void collect(const toml::table& table, const std::string& prefix, std::string_view file,
             std::vector<Found>& found) {
  for (const auto& [key, node] : table) {
    const std::string name = prefix + std::string(key.str());
    const std::string where = place(file, key.source());
    if (const toml::table* section = node.as_table()) {
      if (section->empty()) check_section(name, where);  // nothing else would notice it
      collect(*section, name + ".", file, found);
      continue;
    }
    if (const toml::array* list = node.as_array(); list && is_list_of_tables(name)) {
      collect_entries(*list, name, file, found);
      continue;
    }
    std::optional<ConfigValue> value = value_of(node);
    if (!value)
      throw ParseError(
          fmt::format("{}: {} is {}; values are texts, numbers, true, false and lists of numbers",
                      where, name, kind_text(node)));
    found.push_back({{name, std::move(*value), where}, key.source().begin});
  }
}

// Where the string that begins at `at` ends: behind its quotes, or at the end of the text. One of
// three quotes may have one or two of its own right before those that close it.
std::size_t end_of_string(std::string_view text, std::size_t at) {
  const std::string quote(1, text[at]), three(3, text[at]);
  const bool is_long = text.substr(at, 3) == three;
  const std::string& closing = is_long ? three : quote;
  for (at += closing.size(); at < text.size(); ++at) {
    if (text.substr(at, closing.size()) == closing) {
      at += closing.size();
      for (int k = 0; is_long && k < 2 && text.substr(at, 1) == quote; ++k) ++at;
      return at;
    }
    if (text[at] == '\\' && quote == "\"") ++at;
  }
  return text.size();
}

// Where a key begins that has more parts than any config wants: each is a table in the one before,
// and the library takes such tables apart by recursion. Nothing else has several dots in a row of
// names, strings and blanks.
std::optional<std::size_t> key_with_too_many_parts(std::string_view text) {
  int parts = 1;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '"' || c == '\'') {
      at = end_of_string(text, at);
      continue;
    }
    if (c == '#') {
      at = std::min(text.find('\n', at), text.size());
      continue;
    }
    ++at;
    if (c == '.') {
      if (++parts > kMostKeyParts) return begin;
    } else if (std::isalnum(static_cast<unsigned char>(c)) == 0 &&
               std::string_view("_- \t").find(c) == std::string_view::npos) {
      parts = 1;
      begin = at;
    }
  }
  return {};
}

toml::table parse(std::string_view text, std::string_view file) {
  if (const std::optional<std::size_t> at = key_with_too_many_parts(text)) {
    const std::string_view before = text.substr(0, *at);
    throw ParseError(fmt::format(
        "{}:{}:{}: a key of more than {} parts; those of a config have two at most, as in "
        "optimizer.lr",
        file, 1 + std::ranges::count(before, '\n'), *at - (before.find_last_of('\n') + 1) + 1,
        kMostKeyParts));
  }
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    throw ParseError(fmt::format("{}: {}", place(file, error.source()), error.description()));
  }
}

// What the text says as the right side of a TOML line, if it is one.
std::optional<ConfigValue> toml_value(std::string_view text) {
  if (text.find_first_of("\n\r#") != std::string_view::npos || key_with_too_many_parts(text))
    return {};
  for (const char* form : {"value = {}", "value = [{}]"}) {
    try {
      const toml::table table = toml::parse(fmt::format(fmt::runtime(form), text));
      if (table.size() == 1) return value_of(*table.get("value"));
    } catch (const toml::parse_error&) {}
  }
  return {};
}

std::string toml_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      out += fmt::format("\\{}", c);
    else if (byte < 0x20 || byte == 0x7f)
      out += fmt::format("\\u{:04X}", byte);
    else
      out += c;
  }
  return out + '"';
}

struct ValueText {
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(std::int64_t value) const { return fmt::to_string(value); }
  std::string operator()(double value) const { return exact(value); }
  std::string operator()(const std::string& value) const { return toml_string(value); }
  std::string operator()(const std::vector<std::string>& value) const {
    std::vector<std::string> texts;
    for (const std::string& text : value) texts.push_back(toml_string(text));
    return fmt::format("[{}]", fmt::join(texts, ", "));
  }
  std::string operator()(const std::vector<double>& value) const {
    std::vector<std::string> texts;
    for (const double number : value) texts.push_back(exact(number));
    return fmt::format("[{}]", fmt::join(texts, ", "));
  }
};

// The kind that the key takes: "0" is a column's name for `data.label` and a number for `seed`.
ConfigValue value_for(const std::string& key, std::string_view text) {
  const std::optional<ConfigValue> read = toml_value(text);
  if (!read) return std::string(text);
  for (const Key& known : config_keys())
    if (known.name == key && known.set) try {
        RunConfig scratch;
        known.set(scratch, *read);
      } catch (const TypeError&) {
        if (std::holds_alternative<std::string>(known.default_value())) return std::string(text);
      }
  return *read;
}

}  // namespace

std::string value_text(const ConfigValue& value) { return std::visit(ValueText{}, value); }

std::vector<Assignment> read_toml(std::string_view text, std::string_view file) {
  std::vector<Found> found;
  collect(parse(text, file), "", file, found);
  std::sort(found.begin(), found.end(), [](const Found& a, const Found& b) {
    return std::pair(a.position.line, a.position.column) <
           std::pair(b.position.line, b.position.column);
  });
  std::vector<Assignment> assignments;
  for (Found& one : found) assignments.push_back(std::move(one.assignment));
  return assignments;
}

std::vector<Assignment> read_toml_file(const std::filesystem::path& path) {
  return read_toml(io::read_file(path, kMaxConfigBytes), path.string());
}

Assignment parse_set(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0)
    throw TypeError(fmt::format("--set must be KEY=VALUE, got {}", in_quotes(text)));
  const std::string key(text.substr(0, equals));
  return {key, value_for(key, text.substr(equals + 1)), "--set"};
}

Assignment parse_flag(const KeyFlag& flag, std::string_view text) {
  return {flag.key, value_for(flag.key, text), flag.flag};
}

std::string write_toml(const RunConfig& config) {
  std::string text, section;
  std::optional<std::size_t> entry;
  for (const Assignment& one : values_of(config)) {
    const KeyParts parts = key_parts(one.key);
    if (parts.section != section || parts.entry != entry)
      text += fmt::format(fmt::runtime(parts.entry ? "\n[[{}]]\n" : "\n[{}]\n"), parts.section);
    section = parts.section;
    entry = parts.entry;
    text += fmt::format("{} = {}\n", parts.name, value_text(one.value));
  }
  return text;
}

}  // namespace pantala::run
