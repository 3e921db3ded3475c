// What a model must know of its data. It is kept in the run folder (data.json), so that evaluation
// and prediction treat other data the same way.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "pantala/data.h"
#include "pantala/zoo.h"

namespace pantala::run {

struct DataFacts {
  static constexpr std::int64_t kMaxClasses = 1 << 20;

  Shape item;                         // as it is in the data, or after data.resize and the like
  std::int64_t classes = 0;           // 0: the labels are numbers
  std::int64_t targets = 0;           // so many per item; 0: the labels are classes
  Shape positions;                    // of an item, with a class each; no axes: it has one class
  std::vector<std::string> names;     // of the classes, if they have some
  std::vector<data::Column> columns;  // of a table
  std::vector<double> fill;           // for missing values, by column; empty: none may be
  double factor = 1;                  // of all values, before the rest
  std::vector<double> mean, std;      // by channel or column, or one for all; empty: none
  // Of the targets, by column; empty: they are learnt as they are. Labels and predictions stay in
  // their own units: the model's graph scales.
  std::vector<double> target_mean, target_std;
  bool tokens = false;     // items are windows of text; the classes are the vocabulary
  std::uint64_t hash = 0;  // of the data that were trained and validated with
  std::int64_t position_count() const { return positions.rank() == 0 ? 0 : positions.numel(); }
  zoo::Task task() const { return targets > 0 ? zoo::Task::regression : zoo::Task::classification; }
  friend bool operator==(const DataFacts&, const DataFacts&) = default;
};
// The name of a class, or its number if it has none.
std::string class_title(const DataFacts& facts, std::size_t klass);
std::string facts_json(const DataFacts& facts);
// ParseError for a file that holds none.
DataFacts read_facts(const std::filesystem::path& path);

}  // namespace pantala::run
