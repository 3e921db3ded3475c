// Metrics of predictions, summed over batches in double.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pantala::metrics {

// What is measured of predictions: of classes, of numbers, of a language model whose tokens are
// bytes, or are others.
enum class Kind : std::uint8_t { classes, numbers, tokens, bytes };
std::string_view kind_name(Kind kind);  // "classes"

// All that an evaluation can have, the loss first.
struct Metric {
  std::string name;
  bool larger_is_better = false;
  std::vector<Kind> of;
};
const std::vector<Metric>& table();
std::vector<std::string> names();              // of all
std::vector<std::string> names(Kind kind);     // of one kind
bool larger_is_better(std::string_view name);  // false for what is none

// Rows are the true classes, columns the predicted ones; an item for which nothing could be
// predicted is counted as wrong without a column. Only cells that are not 0 take memory, so that
// there may be very many classes.
class ConfusionMatrix {
 public:
  explicit ConfusionMatrix(std::int64_t classes = 0);
  // TypeError outside of the classes.
  void add(std::int64_t truth, std::int64_t predicted, std::int64_t count = 1);
  void add_undecided(std::int64_t truth, std::int64_t count = 1);
  std::int64_t classes() const { return classes_; }
  std::int64_t at(std::int64_t truth, std::int64_t predicted) const;
  std::int64_t undecided(std::int64_t truth) const;
  struct Cell {
    std::int64_t truth = 0, predicted = 0, count = 0;
  };
  std::vector<Cell> cells() const;  // that are not 0, row by row
  std::int64_t total() const;
  double accuracy() const;  // 0 if empty, as all of these
  // Of one class, and the means over all classes that occur in truth or prediction.
  double precision(std::int64_t c) const;
  double recall(std::int64_t c) const;
  double f1(std::int64_t c) const;
  double macro_precision() const;
  double macro_recall() const;
  double macro_f1() const;
  // A table for people; with class names if there are any.
  std::string text(const std::vector<std::string>& names = {}) const;
  friend bool operator==(const ConfusionMatrix&, const ConfusionMatrix&) = default;

 private:
  double macro(double (ConfusionMatrix::*of_class)(std::int64_t) const) const;

  std::int64_t classes_ = 0;
  std::map<std::int64_t, std::int64_t> counts_;  // by truth * classes + predicted
  std::vector<std::int64_t> in_truth_, in_prediction_, undecided_;  // by class
};

// Of scores [items, classes] and classes.
class Classification {
 public:
  // Accuracy is counted for the k best scores too, for every k given that is below the number of
  // classes.
  explicit Classification(std::int64_t classes, std::vector<std::int64_t> top_k = {5});
  // Row by row; TypeError if there are not `classes` scores for each label, or for a label that is
  // no class. Of equal scores the first one is the better. A row with a NaN is counted as wrong.
  void add(std::span<const float> scores, std::span<const std::int64_t> labels);
  const ConfusionMatrix& confusion() const { return confusion_; }
  // All that was counted; what add_counts() of another one is given is counted there, too, as if it
  // had been measured in one place. TypeError for other classes or k.
  std::vector<std::int64_t> counts() const;
  void add_counts(std::span<const std::int64_t> counts);
  // ("accuracy", 0.91), ("top5", ...), ("precision", ...), ("recall", ...), ("f1", ...)
  std::vector<std::pair<std::string, double>> values() const;

 private:
  void add_item(std::span<const float> scores, std::int64_t label);

  ConfusionMatrix confusion_;
  std::vector<std::int64_t> top_k_, hits_;
  std::int64_t items_ = 0;
};

// Of numbers and targets [items, columns].
class Regression {
 public:
  explicit Regression(std::int64_t columns = 1);  // TypeError below 1
  // Row by row; TypeError unless there are as many predictions as targets, and whole rows.
  void add(std::span<const float> predictions, std::span<const float> targets);
  // ("mae", ...), ("rmse", ...) over all numbers and ("r2", ...), the mean over the columns; all 0
  // without numbers. Of a column whose targets are all equal r2 is 1 if they were met exactly, else
  // 0.
  std::vector<std::pair<std::string, double>> values() const;

 private:
  struct Column {
    double absolute = 0, squared = 0;  // sums of errors
    double mean = 0, spread = 0;       // of the targets: Welford
  };
  std::int64_t items_ = 0;
  std::vector<Column> columns_;
};

}  // namespace pantala::metrics
