// The columns of a CSV file: what each of them holds, found out while its rows come by.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "io/csv.h"

namespace pantala::data {

// What a field looks like.
enum class FieldKind : std::uint8_t { empty, number, not_finite, text };
struct Field {
  FieldKind kind = FieldKind::empty;
  double number = 0;
  bool out_of_range = false;  // a number that no f32 holds
};
Field classify(std::string_view text);
// A class: digits alone, and not too many of them.
bool is_whole_number(std::string_view text);
// Nothing, or one of the words that stand for it.
bool is_missing(const io::CsvField& field);

// What is known of a column before it is read.
struct ColumnRule {
  enum class Holds : std::uint8_t {
    anything,
    numbers,      // as in the data of a model
    known_texts,  // `texts` and nothing else, with the numbers 0, 1, ...
    texts,        // whatever they look like
  };
  Holds holds = Holds::anything;
  std::vector<std::string> texts = {};
  bool keep_missing = false;  // a missing number is NaN; otherwise it is a mistake
};

// One column. Unless a rule says it, its first field that is not empty (with keep_missing: not
// missing) decides whether it holds numbers or names. From then on the other kind is a mistake
// ("NA" before numbers would make names of them all), except that numbers in quotes may be names.
class CsvColumn {
 public:
  CsvColumn(std::string file, std::string name, ColumnRule rule = {});

  // The field's number, or that of its class. ParseError with line and column.
  double take(const io::CsvField& field, std::int64_t line);
  // ParseError if there never was anything in it.
  void finish() const;

  bool holds_names() const { return kind_ == FieldKind::text; }
  // In order of first appearance.
  const std::vector<std::string>& names() const { return names_; }
  // The first fields, so many, had no value before one told what the column holds. Of a column of
  // numbers they are missing, whatever take() gave for them.
  std::size_t undecided() const { return undecided_; }
  [[noreturn]] void fail(std::int64_t line, std::string_view why) const;

 private:
  double take_number(const Field& field, std::string_view text, std::int64_t line) const;
  void decide(FieldKind kind, std::string_view text, std::int64_t line);
  double name_number(std::string_view text, std::int64_t line);

  std::string file_, name_;
  ColumnRule rule_;
  FieldKind kind_ = FieldKind::empty;  // until decided
  std::string first_;                  // the field that decided
  bool first_missing_ = false;         // it is a word for a missing value
  std::int64_t first_line_ = 0, empty_line_ = 0;
  std::size_t undecided_ = 0;
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::size_t> numbers_;
};

}  // namespace pantala::data
