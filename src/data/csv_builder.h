// A data set from the records of a CSV file.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/csv_table.h"
#include "pantala/data.h"

namespace pantala::data {

inline constexpr std::size_t kNoLabel = static_cast<std::size_t>(-1);

// What the first lines tell of a file.
struct CsvHead {
  std::string file;
  std::vector<std::string> names;  // of all columns, or none
  std::size_t columns = 0;
  std::size_t label = kNoLabel;
};

class TableBuilder {
 public:
  // TypeError if the columns are not those of options.like, or not those that options.one_hot
  // names.
  TableBuilder(CsvHead head, const CsvOptions& options);

  // ParseError with line and column.
  void add(std::span<const io::CsvField> fields, std::int64_t line);
  Dataset finish() &&;

 private:
  void check_like() const;
  ColumnRule rule_of(std::size_t column, std::size_t place) const;
  bool is_dropped(std::span<const io::CsvField> fields) const;
  void add_label(const io::CsvField& label, std::int64_t line);
  void keep_row(std::span<const io::CsvField> fields);
  bool is_one_hot(std::size_t column, std::size_t place) const;
  std::vector<Column> data_columns() const;
  void check_patterns() const;  // of options.one_hot: each means something
  // NaN for numbers that came before the column told that it holds some.
  void mark_missing();
  // The data with one-hot columns as many as they have texts, `wide` in all.
  std::vector<float> expanded(const std::vector<Column>& columns, std::size_t wide) const;
  Array make_data(const std::vector<Column>& columns);
  Array make_labels() const;
  std::size_t width() const { return head_.columns - (head_.label == kNoLabel ? 0 : 1); }

  CsvHead head_;
  CsvOptions options_;
  bool reads_label_;  // a label that may be missing is not looked at
  std::vector<CsvColumn> columns_;
  std::vector<float> data_;  // [items, width], texts as their numbers
  std::vector<double> labels_;
  TableRows rows_;
  std::int64_t items_ = 0, lines_ = 0;  // of data; some may be left out
  bool classes_ = true;                 // all labels are names, or whole numbers
};

}  // namespace pantala::data
