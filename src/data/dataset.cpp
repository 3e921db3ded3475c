#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "data/items.h"
#include "data/order.h"
#include "pantala/error.h"

namespace pantala::data {

namespace {

Dataset with_items(const Dataset& dataset, std::span<const std::int64_t> numbers,
                   std::string name) {
  return {.data = std::make_shared<const Array>(take_items(*dataset.data, numbers)),
          .labels = std::make_shared<const Array>(take_items(*dataset.labels, numbers)),
          .name = std::move(name),
          .classes = dataset.classes};
}

}  // namespace

void check_dataset(const Dataset& dataset) {
  if (!dataset.data || !dataset.labels)
    throw TypeError(
        fmt::format("data set '{}': has no {}", dataset.name, dataset.data ? "labels" : "data"));
  check_array(*dataset.data, fmt::format("data set '{}': data", dataset.name));
  check_array(*dataset.labels, fmt::format("data set '{}': labels", dataset.name));
  if (dataset.data->items() != dataset.labels->items())
    throw TypeError(fmt::format("data set '{}': {} items with {} labels (data {}, labels {})",
                                dataset.name, dataset.data->items(), dataset.labels->items(),
                                dataset.data->shape.str(), dataset.labels->shape.str()));
}

Dataset make_dataset(Array data, Array labels, std::string name) {
  Dataset dataset{.data = std::make_shared<const Array>(std::move(data)),
                  .labels = std::make_shared<const Array>(std::move(labels)),
                  .name = std::move(name),
                  .classes = {}};
  check_dataset(dataset);
  return dataset;
}

Dataset slice(const Dataset& dataset, std::int64_t first, std::int64_t count) {
  check_dataset(dataset);
  if (first < 0 || count < 0 || first > dataset.size() || count > dataset.size() - first)
    throw TypeError(fmt::format("slice: {} items from item {} on are not within the {} of '{}'",
                                count, first, dataset.size(), dataset.name));
  std::vector<std::int64_t> numbers = plain_order(count);
  for (std::int64_t& number : numbers) number += first;
  return with_items(dataset, numbers, dataset.name);
}

std::pair<Dataset, Dataset> split(const Dataset& dataset, std::int64_t count, std::uint64_t seed) {
  check_dataset(dataset);
  if (count < 0 || count > dataset.size())
    throw TypeError(
        fmt::format("split: {} of the {} items of '{}'", count, dataset.size(), dataset.name));
  std::vector<std::int64_t> order = random_order(dataset.size(), seed, 0, Stream::split);
  // Both parts keep the order of the whole.
  const auto middle = order.begin() + count;
  std::sort(order.begin(), middle);
  std::sort(middle, order.end());
  const std::span<const std::int64_t> numbers = order;
  const auto taken = static_cast<std::size_t>(count);
  return {with_items(dataset, numbers.subspan(taken), dataset.name),
          with_items(dataset, numbers.first(taken), dataset.name)};
}

}  // namespace pantala::data
