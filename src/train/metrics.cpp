#include "pantala/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "pantala/error.h"

namespace pantala::metrics {

namespace {

double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

double share(std::int64_t part, std::int64_t whole) {
  return ratio(static_cast<double>(part), static_cast<double>(whole));
}

std::size_t checked_class(std::int64_t c, std::int64_t classes, std::string_view what) {
  if (c < 0 || c >= classes)
    throw TypeError(
        fmt::format("metrics: the {} class is {}, but there are {} classes", what, c, classes));
  return static_cast<std::size_t>(c);
}

}  // namespace

std::string_view kind_name(Kind kind) {
  constexpr std::string_view kNames[] = {"classes", "numbers", "tokens", "bytes"};
  return kNames[static_cast<std::size_t>(kind)];
}

const std::vector<Metric>& table() {
  using enum Kind;
  static const std::vector<Metric> all = {
      {"loss", false, {classes, numbers, tokens, bytes}},
      {"accuracy", true, {classes, tokens, bytes}},
      {"top5", true, {classes}},
      {"precision", true, {classes}},
      {"recall", true, {classes}},
      {"f1", true, {classes}},
      {"mae", false, {numbers}},
      {"rmse", false, {numbers}},
      {"r2", true, {numbers}},
      {"perplexity", false, {tokens, bytes}},
      {"bits_per_token", false, {tokens}},
      {"bits_per_byte", false, {bytes}},
  };
  return all;
}

std::vector<std::string> names() {
  std::vector<std::string> list;
  for (const Metric& metric : table()) list.push_back(metric.name);
  return list;
}

std::vector<std::string> names(Kind kind) {
  std::vector<std::string> list;
  for (const Metric& metric : table())
    if (std::find(metric.of.begin(), metric.of.end(), kind) != metric.of.end())
      list.push_back(metric.name);
  return list;
}

bool larger_is_better(std::string_view name) {
  return std::any_of(table().begin(), table().end(), [&](const Metric& metric) {
    return metric.name == name && metric.larger_is_better;
  });
}

ConfusionMatrix::ConfusionMatrix(std::int64_t classes) : classes_(classes) {
  if (classes < 0)
    throw TypeError(
        fmt::format("metrics: the number of classes is {}, must be 0 or more", classes));
  const auto count = static_cast<std::size_t>(classes);
  in_truth_.resize(count);
  in_prediction_.resize(count);
  undecided_.resize(count);
}

void ConfusionMatrix::add(std::int64_t truth, std::int64_t predicted, std::int64_t count) {
  const std::size_t row = checked_class(truth, classes_, "true"),
                    column = checked_class(predicted, classes_, "predicted");
  counts_[truth * classes_ + predicted] += count;
  in_truth_[row] += count;
  in_prediction_[column] += count;
}

void ConfusionMatrix::add_undecided(std::int64_t truth, std::int64_t count) {
  const std::size_t row = checked_class(truth, classes_, "true");
  in_truth_[row] += count;
  undecided_[row] += count;
}

std::int64_t ConfusionMatrix::at(std::int64_t truth, std::int64_t predicted) const {
  checked_class(truth, classes_, "true");
  checked_class(predicted, classes_, "predicted");
  const auto found = counts_.find(truth * classes_ + predicted);
  return found == counts_.end() ? 0 : found->second;
}

std::int64_t ConfusionMatrix::undecided(std::int64_t truth) const {
  return undecided_[checked_class(truth, classes_, "true")];
}

std::vector<ConfusionMatrix::Cell> ConfusionMatrix::cells() const {
  std::vector<Cell> cells;
  for (const auto& [place, count] : counts_)
    cells.push_back({place / classes_, place % classes_, count});
  return cells;
}

std::int64_t ConfusionMatrix::total() const {
  return std::accumulate(in_truth_.begin(), in_truth_.end(), std::int64_t{0});
}

double ConfusionMatrix::accuracy() const {
  std::int64_t right = 0;
  for (std::int64_t c = 0; c < classes_; ++c) right += at(c, c);
  return share(right, total());
}

double ConfusionMatrix::precision(std::int64_t c) const {
  return share(at(c, c), in_prediction_[static_cast<std::size_t>(c)]);
}
double ConfusionMatrix::recall(std::int64_t c) const {
  return share(at(c, c), in_truth_[static_cast<std::size_t>(c)]);
}
double ConfusionMatrix::f1(std::int64_t c) const {
  const auto k = static_cast<std::size_t>(c);
  return share(2 * at(c, c), in_prediction_[k] + in_truth_[k]);
}

double ConfusionMatrix::macro(double (ConfusionMatrix::*of_class)(std::int64_t) const) const {
  double sum = 0;
  std::int64_t present = 0;
  for (std::int64_t c = 0; c < classes_; ++c) {
    const auto k = static_cast<std::size_t>(c);
    if (in_truth_[k] + in_prediction_[k] == 0) continue;
    sum += (this->*of_class)(c);
    ++present;
  }
  return ratio(sum, static_cast<double>(present));
}

double ConfusionMatrix::macro_precision() const { return macro(&ConfusionMatrix::precision); }
double ConfusionMatrix::macro_recall() const { return macro(&ConfusionMatrix::recall); }
double ConfusionMatrix::macro_f1() const { return macro(&ConfusionMatrix::f1); }

std::string ConfusionMatrix::text(const std::vector<std::string>& names) const {
  const auto name = [&](std::int64_t c) {
    const auto k = static_cast<std::size_t>(c);
    if (k < names.size()) return names[k];
    return names.empty() ? std::string() : std::to_string(c);
  };
  const bool any_undecided =
      std::any_of(undecided_.begin(), undecided_.end(), [](std::int64_t n) { return n > 0; });
  std::size_t label = 0, cell = 4;
  for (std::int64_t c = 0; c < classes_; ++c) {
    label = std::max(label, name(c).size());
    cell = std::max(cell, std::to_string(c).size());
  }
  for (const auto& [place, count] : counts_) cell = std::max(cell, std::to_string(count).size());
  if (label > 0) ++label;
  // Columns are headed by the number of the class: names are long, and the rows have both.
  std::string text = fmt::format("{:<{}}", "true", label + 5);
  for (std::int64_t c = 0; c < classes_; ++c) text += fmt::format(" {:>{}}", c, cell);
  text += any_undecided ? fmt::format(" {:>{}}  recall\n", "none", cell) : "  recall\n";
  for (std::int64_t c = 0; c < classes_; ++c) {
    text += fmt::format("{:<{}}{:>4} ", name(c), label, c);
    for (std::int64_t k = 0; k < classes_; ++k) text += fmt::format(" {:>{}}", at(c, k), cell);
    if (any_undecided) text += fmt::format(" {:>{}}", undecided(c), cell);
    text += fmt::format("  {:6.4f}\n", recall(c));
  }
  return text;
}

Classification::Classification(std::int64_t classes, std::vector<std::int64_t> top_k)
    : confusion_(classes) {
  for (const std::int64_t k : top_k) {
    if (k < 1) throw TypeError(fmt::format("metrics: top_k has {}, must be 1 or more", k));
    if (k < classes) top_k_.push_back(k);
  }
  hits_.resize(top_k_.size());
}

void Classification::add(std::span<const float> scores, std::span<const std::int64_t> labels) {
  const auto classes = static_cast<std::size_t>(confusion_.classes());
  if (scores.size() != labels.size() * classes)
    throw TypeError(fmt::format("metrics: {} labels of {} classes need {} scores, got {}",
                                labels.size(), classes, labels.size() * classes, scores.size()));
  for (const std::int64_t label : labels) checked_class(label, confusion_.classes(), "true");
  for (std::size_t item = 0; item < labels.size(); ++item)
    add_item(scores.subspan(item * classes, classes), labels[item]);
}

void Classification::add_item(std::span<const float> scores, std::int64_t label) {
  ++items_;
  if (std::any_of(scores.begin(), scores.end(), [](float s) { return std::isnan(s); })) {
    confusion_.add_undecided(label);
    return;
  }
  confusion_.add(label, std::max_element(scores.begin(), scores.end()) - scores.begin());
  const auto at = static_cast<std::size_t>(label);
  std::int64_t rank = 0;  // so many are better
  for (std::size_t k = 0; k < scores.size(); ++k)
    rank += scores[k] > scores[at] || (scores[k] == scores[at] && k < at) ? 1 : 0;
  for (std::size_t k = 0; k < top_k_.size(); ++k) hits_[k] += rank < top_k_[k] ? 1 : 0;
}

std::vector<std::pair<std::string, double>> Classification::values() const {
  std::vector<std::pair<std::string, double>> values = {{"accuracy", confusion_.accuracy()}};
  for (std::size_t k = 0; k < top_k_.size(); ++k)
    values.emplace_back(fmt::format("top{}", top_k_[k]), share(hits_[k], items_));
  values.emplace_back("precision", confusion_.macro_precision());
  values.emplace_back("recall", confusion_.macro_recall());
  values.emplace_back("f1", confusion_.macro_f1());
  return values;
}

// Classes, items, hits, items without a prediction by class, then the cells in threes.
std::vector<std::int64_t> Classification::counts() const {
  std::vector<std::int64_t> counts = {confusion_.classes(), items_};
  counts.insert(counts.end(), hits_.begin(), hits_.end());
  for (std::int64_t c = 0; c < confusion_.classes(); ++c) counts.push_back(confusion_.undecided(c));
  for (const auto& [truth, predicted, count] : confusion_.cells())
    counts.insert(counts.end(), {truth, predicted, count});
  return counts;
}

void Classification::add_counts(std::span<const std::int64_t> counts) {
  const auto classes = static_cast<std::size_t>(confusion_.classes());
  const std::size_t before_cells = 2 + hits_.size() + classes;
  if (counts.size() < before_cells || (counts.size() - before_cells) % 3 != 0 ||
      counts[0] != confusion_.classes())
    throw TypeError(
        fmt::format("metrics: {} counts do not belong to {} classes", counts.size(), classes));
  items_ += counts[1];
  counts = counts.subspan(2);
  for (std::int64_t& hits : hits_) {
    hits += counts[0];
    counts = counts.subspan(1);
  }
  for (std::size_t c = 0; c < classes; ++c)
    confusion_.add_undecided(static_cast<std::int64_t>(c), counts[c]);
  for (counts = counts.subspan(classes); !counts.empty(); counts = counts.subspan(3))
    confusion_.add(counts[0], counts[1], counts[2]);
}

Regression::Regression(std::int64_t columns) {
  if (columns < 1) throw TypeError(fmt::format("metrics: {} columns, must be 1 or more", columns));
  columns_.resize(static_cast<std::size_t>(columns));
}

void Regression::add(std::span<const float> predictions, std::span<const float> targets) {
  if (predictions.size() != targets.size() || targets.size() % columns_.size() != 0)
    throw TypeError(fmt::format("metrics: {} predictions for {} targets in {} columns",
                                predictions.size(), targets.size(), columns_.size()));
  for (std::size_t k = 0; k < targets.size(); ++k) {
    const std::size_t at = k % columns_.size();
    if (at == 0) ++items_;
    Column& column = columns_[at];
    const double target = targets[k], error = predictions[k] - target;
    column.absolute += std::fabs(error);
    column.squared += error * error;
    const double before = target - column.mean;
    column.mean += before / static_cast<double>(items_);
    column.spread += before * (target - column.mean);
  }
}

std::vector<std::pair<std::string, double>> Regression::values() const {
  double absolute = 0, squared = 0, r2 = 0;
  for (const Column& column : columns_) {
    absolute += column.absolute;
    squared += column.squared;
    const double without_spread = items_ > 0 && column.squared == 0 ? 1 : 0;
    r2 += column.spread > 0 ? 1 - column.squared / column.spread : without_spread;
  }
  const auto columns = static_cast<double>(columns_.size());
  const double count = static_cast<double>(items_) * columns;
  return {{"mae", ratio(absolute, count)},
          {"rmse", std::sqrt(ratio(squared, count))},
          {"r2", r2 / columns}};
}

}  // namespace pantala::metrics
