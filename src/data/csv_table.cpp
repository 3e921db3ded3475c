#include "data/csv_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>

#include "base/text.h"
#include "pantala/error.h"

namespace pantala::data {

namespace {

constexpr std::size_t kShown = 40;                       // characters of a field in messages
constexpr std::size_t kMaxNames = std::size_t{1} << 24;  // exact in f32
constexpr std::size_t kMaxWholeDigits = 15;              // exact in f64

std::string shown(std::string_view text) {
  return text.size() <= kShown ? in_quotes(text) : in_quotes(text.substr(0, kShown)) + "...";
}

// "-1,5"
bool has_decimal_comma(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  const std::size_t comma = text.find(',');
  const auto digits = [](std::string_view part) {
    return !part.empty() &&
           std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
  };
  return comma != std::string_view::npos && digits(text.substr(0, comma)) &&
         digits(text.substr(comma + 1));
}

}  // namespace

Field classify(std::string_view text) {
  if (text.empty()) return {};
  if (text.front() == '+' && text.size() > 1 && text[1] != '-') text.remove_prefix(1);
  double value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size() || status == std::errc::invalid_argument)
    return {.kind = FieldKind::text};
  if (status == std::errc::result_out_of_range)
    return {.kind = FieldKind::number, .out_of_range = true};
  if (!std::isfinite(value)) return {.kind = FieldKind::not_finite};
  return {.kind = FieldKind::number,
          .number = value,
          .out_of_range = !std::isfinite(static_cast<float>(value))};
}

bool is_whole_number(std::string_view text) {
  return !text.empty() && text.size() <= kMaxWholeDigits &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool is_missing(const io::CsvField& field) {
  constexpr std::string_view kWords[] = {"",    "NA",   "N/A",  "n/a",  "NaN",
                                         "nan", "NULL", "null", "None", "?"};
  return !field.quoted &&
         std::find(std::begin(kWords), std::end(kWords), field.text) != std::end(kWords);
}

namespace {

constexpr std::string_view kMissingHint =
    "data.missing (drop or mean) says what becomes of missing values";

std::string missing_hint(std::string_view text) {
  return is_missing({.text = text}) ? fmt::format("; {}", kMissingHint) : "";
}

}  // namespace

CsvColumn::CsvColumn(std::string file, std::string name, ColumnRule rule)
    : file_(std::move(file)), name_(std::move(name)), rule_(std::move(rule)) {
  using Holds = ColumnRule::Holds;
  if (rule_.holds == Holds::numbers) kind_ = FieldKind::number;
  if (rule_.holds == Holds::known_texts || rule_.holds == Holds::texts) kind_ = FieldKind::text;
  names_ = std::move(rule_.texts);
  for (std::size_t k = 0; k < names_.size(); ++k) numbers_.emplace(names_[k], k);
}

void CsvColumn::fail(std::int64_t line, std::string_view why) const {
  throw ParseError(fmt::format("{}: line {}, column {}: {}", file_, line, name_, why));
}

double CsvColumn::take(const io::CsvField& from, std::int64_t line) {
  const std::string_view text = from.text;
  if (rule_.holds == ColumnRule::Holds::known_texts || rule_.holds == ColumnRule::Holds::texts)
    return name_number(text, line);
  const Field field = classify(text);
  const bool missing = rule_.keep_missing && is_missing(from);
  if (kind_ == FieldKind::empty) {
    if (missing || field.kind == FieldKind::empty) {
      if (empty_line_ == 0) empty_line_ = line;
      ++undecided_;
      return name_number(text, line);  // if it is to be one
    }
    decide(field.kind == FieldKind::not_finite ? FieldKind::number : field.kind, text, line);
  }
  if (field.kind == FieldKind::text && !from.quoted && has_decimal_comma(text))
    fail(line, fmt::format("{} is a number with a decimal comma; write a point, or put it in "
                           "quotes if it is a name",
                           shown(text)));
  if (holds_names()) {
    if (field.kind == FieldKind::number && !from.quoted)
      fail(line,
           fmt::format("{} in a column of names (line {} has {}); {}", text, first_line_, first_,
                       first_missing_ ? kMissingHint
                                      : "put it in quotes if it is "
                                        "one"));
    return name_number(text, line);
  }
  if (missing) return std::numeric_limits<double>::quiet_NaN();
  return take_number(field, text, line);
}

double CsvColumn::take_number(const Field& field, std::string_view text, std::int64_t line) const {
  switch (field.kind) {
    case FieldKind::empty:
      fail(line, fmt::format("an empty field in a column of numbers; {}", kMissingHint));
    case FieldKind::text:
      if (rule_.holds == ColumnRule::Holds::numbers)
        fail(line, "text; the model was made for numbers in this column");
      fail(line, fmt::format("{} in a column of numbers (line {} has {}){}", shown(text),
                             first_line_, first_, missing_hint(text)));
    case FieldKind::not_finite:
      fail(line, fmt::format("{} is not a finite number{}", shown(text), missing_hint(text)));
    case FieldKind::number:
      if (field.out_of_range) fail(line, shown(text) + " is out of the range of f32");
  }
  return field.number;
}

void CsvColumn::decide(FieldKind kind, std::string_view text, std::int64_t line) {
  kind_ = kind;
  first_ = shown(text);
  first_missing_ = is_missing({.text = text});
  first_line_ = line;
  if (kind != FieldKind::number) return;
  if (empty_line_ > 0 && !rule_.keep_missing)
    fail(empty_line_, fmt::format("an empty field in a column of numbers; {}", kMissingHint));
  names_.clear();  // those of fields that turn out to be missing numbers
  numbers_.clear();
}

double CsvColumn::name_number(std::string_view text, std::int64_t line) {
  if (rule_.holds == ColumnRule::Holds::known_texts) {
    const auto known = numbers_.find(std::string(text));
    if (known == numbers_.end())
      fail(line, fmt::format("{} is not among the texts of the data that the model was made for{}",
                             shown(text), did_you_mean(std::string(text), names_)));
    return static_cast<double>(known->second);
  }
  const auto [at, added] = numbers_.try_emplace(std::string(text), names_.size());
  if (added) {
    if (names_.size() == kMaxNames)
      throw ParseError(
          fmt::format("{}: column {}: more than {} different names", file_, name_, kMaxNames));
    names_.emplace_back(text);
  }
  return static_cast<double>(at->second);
}

void CsvColumn::finish() const {
  if (kind_ == FieldKind::empty) fail(empty_line_, "all fields of the column are empty");
}

}  // namespace pantala::data
