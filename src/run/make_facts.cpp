#include "run/make_facts.h"

#include <fmt/format.h>

#include <algorithm>

#include "pantala/error.h"
#include "run/run_data.h"
#include "run/sources/labels.h"
#include "run/statistics.h"

namespace pantala::run {

namespace {

// What brings the array to mean 0 and deviation 1.
void add_scale(const data::Array& array, const std::string& name, double factor,
               std::vector<double>& mean, std::vector<double>& std) {
  const Statistics statistics = statistics_of(array, name);
  for (std::size_t k = 0; k < statistics.mean.size(); ++k) {
    const double deviation = factor * statistics.deviation[k];
    mean.push_back(factor * statistics.mean[k]);
    std.push_back(deviation > 0 ? deviation : 1);  // a constant becomes 0
  }
}

// 0 and 1 stay what they are: a rare text would become a large number.
void leave_one_hot(DataFacts& facts) {
  std::size_t at = 0;
  for (const data::Column& column : facts.columns) {
    const std::size_t width = column.one_hot ? column.texts.size() : 1;
    for (std::size_t k = at; column.one_hot && k < at + width; ++k)
      facts.mean[k] = 0, facts.std[k] = 1;
    at += width;
  }
}

// The mean and deviation by which torchvision's models have their images normalised.
void add_imagenet(const data::Dataset& train, DataFacts& facts) {
  if (train.item_form().dtype != u8 || facts.item.rank() != 3 || facts.item[0] != 3)
    throw TypeError(fmt::format(
        "data.normalize = \"imagenet\" is for images of bytes with 3 channels; the items of {} are "
        "{}{}",
        train.name, Type{train.item_form().dtype, facts.item}.str(),
        facts.item.rank() == 3 && facts.item[0] == 1 ? " (data.channels = 3 repeats one)" : ""));
  facts.factor = 1.0 / 255;
  facts.mean = {0.485, 0.456, 0.406};
  facts.std = {0.229, 0.224, 0.225};
}

// The items that the mean and the deviation are taken of: all, or, where each of them must be made
// first, some from everywhere.
data::Array items_for_statistics(const data::Dataset& train, const RunConfig& config) {
  constexpr std::int64_t kMost = 512;
  const std::int64_t count = std::min(kMost, train.size());
  std::vector<std::int64_t> numbers;
  for (std::int64_t k = 0; k < count; ++k) numbers.push_back(k * train.size() / count);
  return data::make_loader(data::select(train, numbers),
                           {.batch_size = count,
                            .shuffle = false,
                            .threads = 0,
                            .transforms = geometry(train, config, Use::evaluation)})
      ->next_batch()
      ->data;
}

}  // namespace

DataFacts make_facts(const RunConfig& config, const data::Dataset& train, zoo::Task task,
                     std::int64_t classes) {
  DataFacts facts;
  facts.item = item_shape(train, config);
  facts.classes = classes;
  facts.names = train.classes;
  facts.columns = train.columns;
  if (task == zoo::Task::regression) facts.targets = targets_of(train);
  const auto& takes_integers = model_of(config).takes_integers;
  if (config.data.normalize == "none" || (takes_integers && takes_integers(config))) return facts;
  if (config.data.normalize == "imagenet") {
    add_imagenet(train, facts);
  } else {
    const bool as_they_are = train.data && geometry(train, config, Use::evaluation).empty();
    if (train.item_form().dtype == u8) facts.factor = 1.0 / 255;
    add_scale(as_they_are ? *train.data : items_for_statistics(train, config), train.name,
              facts.factor, facts.mean, facts.std);
    leave_one_hot(facts);
  }
  if (task == zoo::Task::regression)
    add_scale(*train.labels, train.name, 1, facts.target_mean, facts.target_std);
  return facts;
}

}  // namespace pantala::run
