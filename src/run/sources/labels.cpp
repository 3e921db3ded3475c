#include "run/sources/labels.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>

#include "base/text.h"
#include "pantala/error.h"
#include "pantala/ops/loss.h"

namespace pantala::run {

namespace {

constexpr std::int64_t kMaxClasses = DataFacts::kMaxClasses;

std::vector<std::int64_t> label_numbers(const data::Array& labels) {
  return std::visit(
      [](const auto& values) { return std::vector<std::int64_t>(values.begin(), values.end()); },
      labels.values);
}

std::string label_type(const data::Dataset& set) {
  return Type{set.labels->dtype(), set.labels->shape}.str();
}

// "whole numbers, one per item"
std::string classes_rule(const Shape& positions) {
  if (positions.rank() == 0)
    return "classes are whole numbers, one per item, or names (model.task = \"regression\" learns "
           "numbers)";
  return fmt::format(
      "this model learns a class for each of the {} positions of an item: whole numbers [items, "
      "{}]",
      positions.numel(), fmt::join(positions.vec(), ", "));
}

// "item 3", "item 3, position 7"
std::string label_place(std::size_t k, std::int64_t positions) {
  const auto place = static_cast<std::int64_t>(k);
  return positions == 0 ? fmt::format("item {}", place)
                        : fmt::format("item {}, position {}", place / positions, place % positions);
}

// A batch of items without any label would have no loss.
void check_every_item_counts(const data::Dataset& set, const std::vector<std::int64_t>& labels,
                             std::int64_t positions) {
  const auto ignored = [](std::int64_t label) { return label == kIgnoredLabel; };
  for (auto item = labels.begin(); item != labels.end(); item += positions)
    if (std::all_of(item, item + positions, ignored))
      throw TypeError(
          fmt::format("{}: item {} has no label, all its positions are {}: leave it out", set.name,
                      (item - labels.begin()) / positions, kIgnoredLabel));
}

}  // namespace

zoo::Task task_of(const std::string& wanted, const data::Dataset& train) {
  const bool numbers = wanted == "auto" ? is_float(train.labels->dtype()) : wanted == "regression";
  return numbers ? zoo::Task::regression : zoo::Task::classification;
}

data::Dataset with_checked_classes(const data::Dataset& set, const Shape& positions) {
  const data::Array& labels = *set.labels;
  const std::int64_t count = positions.rank() == 0 ? 0 : positions.numel();
  if (labels.shape != positions.insert(0, set.size()) || !is_integer(labels.dtype()))
    throw TypeError(fmt::format("{}: the labels are {}; {}", set.name, label_type(set),
                                classes_rule(positions)));
  const std::vector<std::int64_t> numbers = label_numbers(labels);
  for (std::size_t k = 0; k < numbers.size(); ++k) {
    if (numbers[k] >= 0 && numbers[k] < kMaxClasses) continue;
    if (count > 0 && numbers[k] == kIgnoredLabel) continue;
    throw TypeError(fmt::format("{}: the label of {} is {}; classes are numbered from 0 to {} ({})",
                                set.name, label_place(k, count), numbers[k], kMaxClasses - 1,
                                count == 0
                                    ? "model.task = \"regression\" learns numbers"
                                    : fmt::format("{}: nothing is learnt there", kIgnoredLabel)));
  }
  if (count > 0) check_every_item_counts(set, numbers, count);
  for (const std::string& name : set.classes)
    if (!is_utf8(name))
      throw TypeError(fmt::format("{}: the name of a class is not text in UTF-8", set.name));
  if (positions.rank() < 2) return set;
  data::Dataset result = set;
  result.labels = std::make_shared<const data::Array>(
      data::Array{.shape = {set.size(), count}, .values = labels.values});
  return result;
}

void check_classes_below(const data::Dataset& set, std::int64_t classes) {
  for (const std::int64_t label : label_numbers(*set.labels))
    if (label >= classes)
      throw TypeError(fmt::format("{}: there is an item of class {}; the model has {} classes",
                                  set.name, label, classes));
}

std::int64_t count_classes(const SourceSets& sets) {
  std::int64_t classes = static_cast<std::int64_t>(sets.train.classes.size());
  for (const data::Dataset* set : {&sets.train, sets.test ? &*sets.test : nullptr})
    if (set)
      for (const std::int64_t label : label_numbers(*set->labels))
        classes = std::max(classes, label + 1);
  return classes;
}

data::Dataset with_classes(const data::Dataset& set, const std::vector<std::string>& names) {
  std::map<std::string, std::int64_t> number;
  for (std::size_t k = 0; k < names.size(); ++k) number[names[k]] = static_cast<std::int64_t>(k);
  std::vector<std::int64_t> labels = label_numbers(*set.labels);
  for (std::int64_t& label : labels) {
    const std::string& name = set.classes.at(static_cast<std::size_t>(label));
    const auto found = number.find(name);
    if (found == number.end())
      throw TypeError(fmt::format("{}: the model knows no class {}{}", set.name, in_quotes(name),
                                  did_you_mean(name, names)));
    label = found->second;
  }
  data::Dataset result = set;
  result.labels = std::make_shared<const data::Array>(
      data::Array{.shape = set.labels->shape, .values = std::move(labels)});
  result.classes = names;
  return result;
}

void check_same_naming(const data::Dataset& set, const DataFacts& facts) {
  const bool of_files = set.data_source != nullptr, of_table = !set.columns.empty();
  if (!set.classes.empty() && facts.names.empty() && (of_files || of_table))
    throw TypeError(fmt::format(
        "{}: the labels are names, but the model learnt numbers: which name is which is not known",
        set.name));
  if (set.classes.empty() && !facts.names.empty() && of_table)
    throw TypeError(fmt::format(
        "{}: the labels are numbers, but the model learnt names: {}", set.name,
        fmt::join(facts.names.begin(),
                  facts.names.begin() + std::min<std::ptrdiff_t>(5, std::ssize(facts.names)),
                  ", ")));
}

data::Dataset with_targets(const data::Dataset& set) {
  const Shape& shape = set.labels->shape;
  if (!set.classes.empty())
    throw TypeError(
        fmt::format("{}: the labels are names; regression (model.task) learns numbers", set.name));
  if (shape.rank() > 2 || (shape.rank() == 2 && (shape[1] < 1 || shape[1] > kMaxClasses)))
    throw TypeError(fmt::format(
        "{}: the labels are {}; regression learns one number per item, or a row of up to {}",
        set.name, label_type(set), kMaxClasses));
  const std::int64_t targets = shape.rank() == 2 ? shape[1] : 1;
  std::vector<float> numbers = std::visit(
      [](const auto& values) {
        std::vector<float> list(values.size());
        std::transform(values.begin(), values.end(), list.begin(),
                       [](auto value) { return static_cast<float>(value); });
        return list;
      },
      set.labels->values);
  for (std::size_t k = 0; k < numbers.size(); ++k)
    if (!std::isfinite(numbers[k]))
      throw ValueError(fmt::format("{}: the label of item {} is not finite, or too large for f32",
                                   set.name, static_cast<std::int64_t>(k) / targets));
  data::Dataset result = set;
  result.labels = std::make_shared<const data::Array>(
      data::Array{.shape = {set.size(), targets}, .values = std::move(numbers)});
  return result;
}

std::int64_t targets_of(const data::Dataset& set) { return set.labels->shape[1]; }

void check_same_targets(const data::Dataset& set, std::int64_t targets) {
  if (targets_of(set) != targets)
    throw TypeError(fmt::format("{}: {} per item; the model was made for {}", set.name,
                                counted(static_cast<std::size_t>(targets_of(set)), "label"),
                                targets));
}

data::Dataset unlabeled(data::Array items, const DataFacts& facts, std::string name) {
  const std::int64_t count = items.items();
  const std::int64_t positions = facts.position_count();
  data::Array labels{.shape = positions == 0 ? Shape{count} : Shape{count, positions},
                     .values = {}};
  if (facts.task() == zoo::Task::regression) {
    labels.shape = {count, facts.targets};
    labels.values = std::vector<float>(static_cast<std::size_t>(labels.shape.numel()),
                                       std::numeric_limits<float>::quiet_NaN());
  } else {
    labels.values =
        std::vector<std::int64_t>(static_cast<std::size_t>(labels.shape.numel()), kUnknownLabel);
  }
  return data::make_dataset(std::move(items), std::move(labels), std::move(name));
}

data::Dataset with_folder_labels(const data::Dataset& set, const DataFacts& facts) {
  std::map<std::string, std::int64_t> numbers;
  for (std::size_t k = 0; k < facts.names.size(); ++k)
    numbers.emplace(facts.names[k], static_cast<std::int64_t>(k));
  std::vector<std::int64_t> labels(static_cast<std::size_t>(set.size()), kUnknownLabel);
  for (std::size_t k = 0; k < labels.size(); ++k) {
    const std::filesystem::path file = set.data_source->item_name(static_cast<std::int64_t>(k));
    for (const std::filesystem::path& folder : file.parent_path())
      if (const auto found = numbers.find(folder.string()); found != numbers.end())
        labels[k] = found->second;  // the innermost one counts
  }
  data::Dataset result = set;
  result.labels = std::make_shared<const data::Array>(
      data::Array{.shape = {set.size()}, .values = std::move(labels)});
  return result;
}

std::vector<std::string> truth_texts(const data::Dataset& set, const DataFacts& facts) {
  const bool numbers = facts.task() == zoo::Task::regression;
  const std::int64_t width =
      numbers ? facts.targets : std::max<std::int64_t>(1, facts.position_count());
  std::vector<std::string> texts(static_cast<std::size_t>(set.size() * width));
  if (set.rows) return set.rows->labels.empty() ? texts : set.rows->labels;
  if (set.labels->shape.numel() != set.size() * width)
    throw TypeError(fmt::format("{}: the labels are {}; the model learnt {} per item", set.name,
                                label_type(set),
                                counted(static_cast<std::size_t>(width), "label")));
  std::visit(
      [&](const auto& values) {
        for (std::size_t k = 0; k < texts.size(); ++k) {
          const auto klass = static_cast<std::int64_t>(values[k]);
          if (numbers)
            texts[k] = std::isnan(static_cast<double>(values[k])) ? "" : fmt::to_string(values[k]);
          else if (klass >= 0)
            texts[k] = class_title(facts, static_cast<std::size_t>(klass));
        }
      },
      set.labels->values);
  return texts;
}

}  // namespace pantala::run
