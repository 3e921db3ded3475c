// CSV files as data sets: rows are items, one column is the label.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "data/csv_table.h"
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

constexpr std::size_t kNoLabel = static_cast<std::size_t>(-1);

class TableBuilder {
 public:
  // `label` may be kNoLabel.
  TableBuilder(std::string file, std::vector<std::string> names, std::size_t columns,
               std::size_t label, const CsvOptions& options)
      : file_(std::move(file)),
        names_(std::move(names)),
        label_(label),
        reads_label_(label != kNoLabel && !options.label_may_lack) {
    const std::vector<Column>& like = options.like;
    check_like(like, columns);
    columns_.reserve(columns);
    for (std::size_t k = 0, place = 0; k < columns; ++k) {
      const bool known = k != label_ && !like.empty();
      columns_.emplace_back(
          file_, names_.empty() ? fmt::format("{} (from 0)", k) : fmt::format("'{}'", names_[k]),
          known ? like[place].texts : std::vector<std::string>());
      if (known) only_numbers_.push_back(like[place++].texts.empty());
    }
  }

  void add(std::span<const io::CsvField> fields, std::int64_t line) {
    if (fields.size() != columns_.size())
      throw ParseError(fmt::format("{}: line {}: {}; the lines before have {}", file_, line,
                                   counted(fields.size(), "field"), columns_.size()));
    for (std::size_t k = 0, place = 0; k < fields.size(); ++k) {
      if (k == label_) continue;
      data_.push_back(static_cast<float>(columns_[k].take(fields[k], line)));
      if (!only_numbers_.empty() && only_numbers_[place++] && columns_[k].holds_names())
        columns_[k].fail(line, "text; the model was made for numbers in this column");
    }
    ++items_;
    if (!reads_label_) return;
    const io::CsvField& label = fields[label_];
    if (label.text.empty()) columns_[label_].fail(line, "the label is empty");
    labels_.push_back(columns_[label_].take(label, line));
    classes_ = classes_ && (columns_[label_].holds_names() || is_whole_number(label.text));
  }

  Dataset finish() && {
    if (items_ == 0) throw ParseError(file_ + ": there are no lines of data");
    for (std::size_t k = 0; k < columns_.size(); ++k)
      if (k != label_ || reads_label_) columns_[k].finish();
    const auto width = static_cast<std::int64_t>(columns_.size()) - (label_ == kNoLabel ? 0 : 1);
    Dataset dataset = make_dataset({.shape = {items_, width}, .values = std::move(data_)},
                                   make_labels(), base_name(file_));
    if (reads_label_) dataset.classes = columns_[label_].names();
    for (std::size_t k = 0; k < columns_.size(); ++k)
      if (k != label_)
        dataset.columns.push_back({names_.empty() ? "" : names_[k], columns_[k].names()});
    return dataset;
  }

 private:
  void check_like(const std::vector<Column>& like, std::size_t columns) const {
    if (like.empty()) return;
    if (const std::size_t data = columns - (label_ == kNoLabel ? 0 : 1); data != like.size())
      throw TypeError(fmt::format("{}: {} of data; the model was made for {}", file_,
                                  counted(data, "column"), like.size()));
    if (names_.empty()) return;
    for (std::size_t k = 0, place = 0; k < columns; ++k) {
      if (k == label_) continue;
      if (const std::string& name = like[place++].name; !name.empty() && name != names_[k])
        throw TypeError(
            fmt::format("{}: column {} (from 0) is '{}'; the model was made for '{}' there", file_,
                        k, names_[k], name));
    }
  }

  Array make_labels() const {
    if (!reads_label_)
      return {.shape = {items_},
              .values = std::vector<std::int64_t>(static_cast<std::size_t>(items_))};
    if (classes_)
      return {.shape = {items_},
              .values = std::vector<std::int64_t>(labels_.begin(), labels_.end())};
    return {.shape = {items_, 1}, .values = std::vector<float>(labels_.begin(), labels_.end())};
  }

  std::string file_;
  std::vector<std::string> names_;  // of all columns, or none
  std::size_t label_;
  bool reads_label_;  // a label that may be missing is not looked at
  std::vector<CsvColumn> columns_;
  std::vector<bool> only_numbers_;  // of the data columns, where they must be like others
  std::vector<float> data_;
  std::vector<double> labels_;
  std::int64_t items_ = 0;
  bool classes_ = true;  // all labels are names, or whole numbers
};

}  // namespace

Dataset read_csv(const std::filesystem::path& path, const CsvOptions& options) {
  const std::string file = path.string();
  const std::string text = io::read_file(path, kMaxCsvBytes);
  io::CsvReader reader(file, text, options.separator);
  if (!reader.next()) throw ParseError(file + ": line 1: the file is empty");
  const std::size_t columns = reader.fields().size();
  const bool unlabelled = options.label_may_lack && columns == options.like.size();
  if (columns < 2 && !unlabelled)
    throw ParseError(
        fmt::format("{}: line 1: a single column; expected data and a label, separated "
                    "by '{}'",
                    file, options.separator));
  std::vector<std::string> names;
  if (options.header ? *options.header : begins_with_header({file, text, options.separator}))
    for (const io::CsvField& field : reader.fields()) names.emplace_back(field.text);

  const std::size_t label = unlabelled ? kNoLabel : find_label(options.label, names, columns, file);
  TableBuilder table(file, names, columns, label, options);
  if (names.empty()) table.add(reader.fields(), reader.line());
  while (reader.next()) table.add(reader.fields(), reader.line());
  return std::move(table).finish();
}

}  // namespace pantala::data
