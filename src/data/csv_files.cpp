// CSV files as data sets: rows are items, one column is the label.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "data/csv_builder.h"
#include "io/file.h"
#include "pantala/data.h"
#include "pantala/error.h"

namespace pantala::data {

namespace {

constexpr std::uint64_t kMaxCsvBytes = std::uint64_t{4} << 30;

// Whether the first record names the columns: a name stands above a number, or all are names.
bool begins_with_header(io::CsvReader reader) {
  reader.next();
  std::vector<FieldKind> first;
  for (const io::CsvField& field : reader.fields()) first.push_back(classify(field.text).kind);
  if (reader.next()) {
    const std::size_t columns = std::min(first.size(), reader.fields().size());
    for (std::size_t k = 0; k < columns; ++k)
      if (first[k] == FieldKind::text &&
          classify(reader.fields()[k].text).kind == FieldKind::number)
        return true;
  }
  return std::all_of(first.begin(), first.end(), [](FieldKind k) { return k == FieldKind::text; });
}

// For messages: all names, or the first ones.
std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 20;
  const std::size_t count = std::min(names.size(), kShown);
  return fmt::format(
      "{}{}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(count), ", "),
      count < names.size() ? ", ..." : "");
}

// The column that `label` means: by name, by number from 0, or the last one.
std::size_t find_label(const std::string& label, const std::vector<std::string>& names,
                       std::size_t columns, const std::string& file) {
  if (label.empty()) return columns - 1;
  const auto found = std::find(names.begin(), names.end(), label);
  if (found != names.end()) {
    if (std::find(found + 1, names.end(), label) != names.end())
      throw TypeError(
          fmt::format("{}: two columns have the name of the label, '{}'; give its "
                      "number, from 0",
                      file, label));
    return static_cast<std::size_t>(found - names.begin());
  }
  std::size_t number = 0;
  const auto [end, status] = std::from_chars(label.data(), label.data() + label.size(), number);
  const bool is_number = status == std::errc{} && end == label.data() + label.size();
  if (is_number && number < columns) return number;
  std::string hint;
  if (!is_number)
    hint =
        names.empty() ? "; the file has no header, so give its number" : did_you_mean(label, names);
  throw TypeError(fmt::format("{}: there is no label column '{}'{} (columns 0 to {}{})", file,
                              label, hint, columns - 1, names.empty() ? "" : ": " + listed(names)));
}

// How many fields the first lines have, if all have equally many by this separator.
std::size_t even_fields(const std::string& file, std::string_view text, char separator) {
  constexpr int kLines = 100;
  try {
    io::CsvReader reader(file, text, separator);
    std::size_t fields = 0;
    for (int line = 0; line < kLines && reader.next(); ++line) {
      if (line > 0 && reader.fields().size() != fields) return 0;
      fields = reader.fields().size();
    }
    return fields;
  } catch (const ParseError&) { return 0; }  // of this separator
}

std::string separator_name(char separator) {
  return separator == '\t' ? "a tab" : fmt::format("'{}'", separator);
}

constexpr char kSeparators[] = {',', ';', '\t', '|'};

// The one that makes a table of the text. If none does it is the usual one, whose mistakes are then
// named.
char find_separator(const std::string& file, std::string_view text) {
  std::vector<char> fitting;
  for (const char separator : kSeparators)
    if (even_fields(file, text, separator) >= 2) fitting.push_back(separator);
  if (fitting.size() > 1)
    throw TypeError(
        fmt::format("{}: its fields could be separated by {} and by {}; say by which "
                    "(data.separator)",
                    file, separator_name(fitting[0]), separator_name(fitting[1])));
  return fitting.empty() ? ',' : fitting[0];
}

// "','", or all that were tried.
std::string separators_text(const std::optional<char>& separator) {
  if (separator) return separator_name(*separator);
  return fmt::format("{}, {}, {} or {}", separator_name(kSeparators[0]),
                     separator_name(kSeparators[1]), separator_name(kSeparators[2]),
                     separator_name(kSeparators[3]));
}

}  // namespace

Dataset read_csv(const std::filesystem::path& path, const CsvOptions& options) {
  const std::string file = path.string();
  const std::string text = io::read_file(path, kMaxCsvBytes);
  const char separator = options.separator ? *options.separator : find_separator(file, text);
  io::CsvReader reader(file, text, separator);
  if (!reader.next()) throw ParseError(file + ": line 1: the file is empty");
  CsvHead head{.file = file, .names = {}, .columns = reader.fields().size()};
  const bool unlabelled = options.label_may_lack && head.columns == options.like.size();
  if (head.columns < 2 && !unlabelled)
    throw ParseError(
        fmt::format("{}: line 1: a single column; expected data and a label, separated by {}", file,
                    separators_text(options.separator)));
  if (options.header ? *options.header : begins_with_header({file, text, separator}))
    for (const io::CsvField& field : reader.fields()) head.names.emplace_back(field.text);
  if (!unlabelled) head.label = find_label(options.label, head.names, head.columns, file);
  const bool has_header = !head.names.empty();
  TableBuilder table(std::move(head), options);
  if (!has_header) table.add(reader.fields(), reader.line());
  while (reader.next()) table.add(reader.fields(), reader.line());
  return std::move(table).finish();
}

}  // namespace pantala::data
