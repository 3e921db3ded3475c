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

// One column. Its first field that is not empty decides whether it holds numbers or names. From
// then on the other kind is a mistake ("NA" before numbers would make names of them all), except
// that numbers in quotes may be names.
class Column {
 public:
  Column(std::string file, std::string name) : file_(std::move(file)), name_(std::move(name)) {}

  // The field's number, or that of its class. ParseError with line and column.
  double take(const io::CsvField& field, std::int64_t line);
  // ParseError if there never was anything in it.
  void finish() const;

  bool holds_names() const { return kind_ == FieldKind::text; }
  // In order of first appearance.
  const std::vector<std::string>& names() const { return names_; }
  [[noreturn]] void fail(std::int64_t line, std::string_view why) const;

 private:
  void decide(FieldKind kind, std::string_view text, std::int64_t line);
  double name_number(std::string_view text);

  std::string file_, name_;
  FieldKind kind_ = FieldKind::empty;  // until decided
  std::string first_;                  // the field that decided
  std::int64_t first_line_ = 0, empty_line_ = 0;
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::size_t> numbers_;
};

}  // namespace pantala::data
