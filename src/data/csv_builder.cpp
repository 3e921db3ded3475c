#include "data/csv_builder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "base/text.h"
#include "pantala/error.h"

namespace pantala::data {

namespace {

constexpr std::size_t kMaxOneHot = 4096;                          // texts of one column
constexpr std::uint64_t kMaxDataBytes = std::uint64_t{16} << 30;  // of the data with all of them

bool is_pattern(const std::string& text) { return text.find_first_of("*?") != std::string::npos; }

// The column's name, or its number from 0.
bool names_column(const std::string& text, const CsvHead& head, std::size_t column) {
  return (!head.names.empty() && head.names[column] == text) || fmt::to_string(column) == text;
}

bool fits_pattern(const std::string& pattern, const CsvHead& head, std::size_t column) {
  return glob_match(pattern, head.names.empty() ? fmt::to_string(column) : head.names[column]);
}

// Each must mean a column of data; what patterns mean is seen when all is read.
void check_one_hot(const std::vector<std::string>& wanted, const CsvHead& head) {
  for (const std::string& one : wanted) {
    bool found = is_pattern(one);
    for (std::size_t k = 0; k < head.columns; ++k) {
      if (!names_column(one, head, k)) continue;
      if (k == head.label)
        throw TypeError(
            fmt::format("{}: column '{}' is the label, which is no column of data to "
                        "make one-hot",
                        head.file, one));
      found = true;
    }
    if (!found)
      throw TypeError(fmt::format("{}: there is no column '{}' to make one-hot{}", head.file, one,
                                  did_you_mean(one, head.names)));
  }
}

}  // namespace

TableBuilder::TableBuilder(CsvHead head, const CsvOptions& options)
    : head_(std::move(head)),
      options_(options),
      reads_label_(head_.label != kNoLabel && !options.label_may_lack) {
  check_like();
  if (options_.like.empty()) check_one_hot(options_.one_hot, head_);
  columns_.reserve(head_.columns);
  for (std::size_t k = 0, place = 0; k < head_.columns; ++k) {
    const std::string name =
        head_.names.empty() ? fmt::format("{} (from 0)", k) : fmt::format("'{}'", head_.names[k]);
    columns_.emplace_back(head_.file, name, k == head_.label ? ColumnRule{} : rule_of(k, place));
    if (k != head_.label) ++place;
  }
}

void TableBuilder::check_like() const {
  const std::vector<Column>& like = options_.like;
  if (like.empty()) return;
  if (width() != like.size())
    throw TypeError(fmt::format("{}: {} of data; the model was made for {}", head_.file,
                                counted(width(), "column"), like.size()));
  if (head_.names.empty()) return;
  for (std::size_t k = 0, place = 0; k < head_.columns; ++k) {
    if (k == head_.label) continue;
    if (const std::string& name = like[place++].name; !name.empty() && name != head_.names[k])
      throw TypeError(
          fmt::format("{}: column {} (from 0) is '{}'; the model was made for '{}' there",
                      head_.file, k, head_.names[k], name));
  }
}

// `place` is the column's among those of data.
ColumnRule TableBuilder::rule_of(std::size_t column, std::size_t place) const {
  using Holds = ColumnRule::Holds;
  ColumnRule rule{.keep_missing = options_.missing == Missing::keep};
  if (!options_.like.empty()) {
    rule.texts = options_.like[place].texts;
    rule.holds = rule.texts.empty() ? Holds::numbers : Holds::known_texts;
  } else if (std::any_of(options_.one_hot.begin(), options_.one_hot.end(),
                         [&](const auto& one) { return names_column(one, head_, column); })) {
    rule.holds = Holds::texts;
  }
  return rule;
}

bool TableBuilder::is_dropped(std::span<const io::CsvField> fields) const {
  if (options_.missing != Missing::drop) return false;
  for (std::size_t k = 0; k < fields.size(); ++k)
    if ((k != head_.label || reads_label_) && is_missing(fields[k])) return true;
  return false;
}

void TableBuilder::add(std::span<const io::CsvField> fields, std::int64_t line) {
  if (fields.size() != columns_.size())
    throw ParseError(fmt::format("{}: line {}: {}; the lines before have {}", head_.file, line,
                                 counted(fields.size(), "field"), columns_.size()));
  ++lines_;
  if (is_dropped(fields)) return;
  for (std::size_t k = 0; k < fields.size(); ++k)
    if (k != head_.label) data_.push_back(static_cast<float>(columns_[k].take(fields[k], line)));
  ++items_;
  if (options_.keep_rows) keep_row(fields);
  if (reads_label_) add_label(fields[head_.label], line);
}

void TableBuilder::add_label(const io::CsvField& label, std::int64_t line) {
  CsvColumn& column = columns_[head_.label];
  if (label.text.empty()) column.fail(line, "the label is empty");
  labels_.push_back(column.take(label, line));
  classes_ = classes_ && (column.holds_names() || is_whole_number(label.text));
}

void TableBuilder::keep_row(std::span<const io::CsvField> fields) {
  rows_.numbers.push_back(lines_ - 1);
  for (std::size_t k = 0; k < fields.size(); ++k)
    (k == head_.label ? rows_.labels : rows_.fields).emplace_back(fields[k].text);
}

bool TableBuilder::is_one_hot(std::size_t column, std::size_t place) const {
  if (!options_.like.empty()) return options_.like[place].one_hot;
  return columns_[column].holds_names() &&
         std::any_of(options_.one_hot.begin(), options_.one_hot.end(), [&](const auto& one) {
           return is_pattern(one) ? fits_pattern(one, head_, column)
                                  : names_column(one, head_, column);
         });
}

void TableBuilder::check_patterns() const {
  for (const std::string& one : options_.one_hot) {
    bool found = !is_pattern(one);
    for (std::size_t k = 0; k < columns_.size(); ++k)
      found =
          found || (k != head_.label && columns_[k].holds_names() && fits_pattern(one, head_, k));
    if (!found)
      throw TypeError(
          fmt::format("{}: there is no column of text '{}' to make one-hot", head_.file, one));
  }
}

std::vector<Column> TableBuilder::data_columns() const {
  std::vector<Column> list;
  for (std::size_t k = 0; k < columns_.size(); ++k) {
    if (k == head_.label) continue;
    Column column{head_.names.empty() ? "" : head_.names[k],
                  columns_[k].holds_names() ? columns_[k].names() : std::vector<std::string>(),
                  is_one_hot(k, list.size())};
    if (column.one_hot && column.texts.size() > kMaxOneHot)
      throw TypeError(
          fmt::format("{}: column {} (from 0) has {} different texts; at most {} are "
                      "made one-hot",
                      head_.file, k, column.texts.size(), kMaxOneHot));
    list.push_back(std::move(column));
  }
  if (options_.like.empty()) check_patterns();
  return list;
}

void TableBuilder::mark_missing() {
  for (std::size_t k = 0, place = 0; k < columns_.size(); ++k) {
    if (k == head_.label) continue;
    const std::size_t count = columns_[k].holds_names() ? 0 : columns_[k].undecided();
    for (std::size_t item = 0; item < count; ++item)
      data_[item * width() + place] = std::numeric_limits<float>::quiet_NaN();
    ++place;
  }
}

std::vector<float> TableBuilder::expanded(const std::vector<Column>& columns,
                                          std::size_t wide) const {
  const auto items = static_cast<std::size_t>(items_);
  if (wide > kMaxDataBytes / sizeof(float) / items)
    throw TypeError(fmt::format("{}: {} items of {} columns, one-hot ones included, are too many",
                                head_.file, items_, wide));
  std::vector<float> data(items * wide);
  float* to = data.data();
  const float* from = data_.data();
  for (std::size_t item = 0; item < items; ++item)
    for (const Column& column : columns) {
      const float value = *from++;
      if (!column.one_hot) {
        *to++ = value;
        continue;
      }
      to[static_cast<std::size_t>(value)] = 1;
      to += column.texts.size();
    }
  return data;
}

Array TableBuilder::make_data(const std::vector<Column>& columns) {
  mark_missing();
  std::size_t wide = 0;
  for (const Column& column : columns) wide += column.one_hot ? column.texts.size() : 1;
  const bool as_it_is = std::none_of(columns.begin(), columns.end(),
                                     [](const Column& column) { return column.one_hot; });
  return {.shape = {items_, static_cast<std::int64_t>(wide)},
          .values = as_it_is ? std::move(data_) : expanded(columns, wide)};
}

Array TableBuilder::make_labels() const {
  if (!reads_label_)
    return {.shape = {items_},
            .values = std::vector<std::int64_t>(static_cast<std::size_t>(items_))};
  if (classes_)
    return {.shape = {items_}, .values = std::vector<std::int64_t>(labels_.begin(), labels_.end())};
  return {.shape = {items_, 1}, .values = std::vector<float>(labels_.begin(), labels_.end())};
}

Dataset TableBuilder::finish() && {
  if (items_ == 0)
    throw ParseError(head_.file + (lines_ == 0 ? ": there are no lines of data"
                                               : ": in every line a value is missing"));
  for (std::size_t k = 0; k < columns_.size(); ++k)
    if (k != head_.label || reads_label_) columns_[k].finish();
  std::vector<Column> columns = data_columns();
  Dataset dataset = make_dataset(make_data(columns), make_labels(), base_name(head_.file));
  if (reads_label_) dataset.classes = columns_[head_.label].names();
  dataset.columns = std::move(columns);
  if (options_.keep_rows) dataset.rows = std::make_shared<const TableRows>(std::move(rows_));
  return dataset;
}

}  // namespace pantala::data
