// The grammar of CSV (RFC 4180): records of fields, with quotes around what holds separators, line
// ends or (doubled) quotes. What the fields mean is for others. Line ends are LF, CR LF or CR;
// empty lines are only allowed at the end; spaces around fields without quotes do not belong to
// them.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pantala::io {

struct CsvLimits {
  std::uint64_t record_bytes = std::uint64_t{16} << 20;
  std::size_t fields = std::size_t{1} << 18;
};

struct CsvField {
  std::string_view text;
  bool quoted = false;
};

class CsvReader {
 public:
  // `name` begins every message; `text` must outlive the reader. TypeError for a separator that
  // could be a part of a field.
  CsvReader(std::string name, std::string_view text, char separator, const CsvLimits& limits = {});

  // Goes to the next record; false at the end. ParseError with line and column.
  bool next();
  // Of the present record; good until next().
  std::span<const CsvField> fields() const { return fields_; }
  // Where the present record begins, counted from 1.
  std::int64_t line() const { return line_; }

 private:
  bool skip_empty_lines();
  void plain_field();
  void quoted_field();
  // Behind a field: true if the record goes on.
  bool separator_follows();
  void end_line();
  bool at_end() const { return at_ == text_.size(); }
  bool at_line_end() const { return text_[at_] == '\n' || text_[at_] == '\r'; }
  void check_length() const;
  [[noreturn]] void fail(std::int64_t line, std::string_view why) const;
  [[noreturn]] void fail_here(std::string_view why) const;

  std::string name_;
  std::string_view text_;
  char separator_;
  CsvLimits limits_;
  std::size_t at_ = 0, record_start_ = 0;
  std::int64_t line_ = 0, next_line_ = 1;
  std::vector<CsvField> fields_;
  std::deque<std::string> unescaped_;  // fields of this record that had doubled quotes
};

}  // namespace pantala::io
