#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "data/items.h"
#include "data/order.h"
#include "pantala/error.h"

namespace pantala::data {

namespace {

// An array, or a source of items in its place.
struct Part {
  const std::shared_ptr<const Array>& array;
  const std::shared_ptr<const ItemSource>& source;

  bool there() const { return array || source; }
  std::int64_t items() const {
    if (array) return array->items();
    return source ? source->items() : 0;
  }
  ItemForm form() const {
    return array ? ItemForm{array->dtype(), array->item_shape(), false} : source->form();
  }
  // With the axis of items.
  std::string str() const {
    return array ? array->shape.str() : fmt::format("{} items of {}", items(), form().str());
  }
};
Part data_of(const Dataset& dataset) { return {dataset.data, dataset.data_source}; }
Part labels_of(const Dataset& dataset) { return {dataset.labels, dataset.label_source}; }

ItemForm form_of(const Dataset& dataset, const Part& part, const char* what) {
  if (!part.there()) throw TypeError(fmt::format("data set '{}': has no {}", dataset.name, what));
  return part.form();
}

TableRows take_rows(const TableRows& rows, std::span<const std::int64_t> numbers) {
  const std::size_t width = rows.numbers.empty() ? 0 : rows.fields.size() / rows.numbers.size();
  TableRows taken;
  for (const std::int64_t number : numbers) {
    const auto at = static_cast<std::size_t>(number);
    const auto field = rows.fields.begin() + static_cast<std::ptrdiff_t>(at * width);
    taken.numbers.push_back(rows.numbers.at(at));
    taken.fields.insert(taken.fields.end(), field, field + static_cast<std::ptrdiff_t>(width));
    if (!rows.labels.empty()) taken.labels.push_back(rows.labels[at]);
  }
  return taken;
}

Dataset with_items(const Dataset& dataset, std::span<const std::int64_t> numbers,
                   std::string name) {
  Dataset result = dataset;
  result.name = std::move(name);
  const auto select = [&](std::shared_ptr<const Array>& array,
                          std::shared_ptr<const ItemSource>& source) {
    if (array) array = std::make_shared<const Array>(take_items(*array, numbers));
    if (source) source = select_items(std::move(source), numbers);
  };
  select(result.data, result.data_source);
  select(result.labels, result.label_source);
  if (result.rows)
    result.rows = std::make_shared<const TableRows>(take_rows(*result.rows, numbers));
  return result;
}

}  // namespace

std::int64_t Dataset::size() const { return data_of(*this).items(); }
ItemForm Dataset::item_form() const { return form_of(*this, data_of(*this), "data"); }
ItemForm Dataset::label_form() const { return form_of(*this, labels_of(*this), "labels"); }

void check_dataset(const Dataset& dataset) {
  const Part data = data_of(dataset), labels = labels_of(dataset);
  if (!data.there() || !labels.there())
    throw TypeError(
        fmt::format("data set '{}': has no {}", dataset.name, data.there() ? "labels" : "data"));
  for (const auto& [part, what] : {std::pair{data, "data"}, std::pair{labels, "labels"}}) {
    if (part.array && part.source)
      throw TypeError(fmt::format("data set '{}': has its {} twice, as an array and as a source",
                                  dataset.name, what));
    if (part.array) check_array(*part.array, fmt::format("data set '{}': {}", dataset.name, what));
  }
  if (data.items() != labels.items())
    throw TypeError(fmt::format("data set '{}': {} items with {} labels (data {}, labels {})",
                                dataset.name, data.items(), labels.items(), data.str(),
                                labels.str()));
}

Dataset make_dataset(Array data, Array labels, std::string name) {
  Dataset dataset{.data = std::make_shared<const Array>(std::move(data)),
                  .labels = std::make_shared<const Array>(std::move(labels)),
                  .name = std::move(name),
                  .classes = {},
                  .columns = {}};
  check_dataset(dataset);
  return dataset;
}

Dataset make_dataset(std::shared_ptr<const ItemSource> data, Array labels, std::string name) {
  Dataset dataset{.data = {},
                  .labels = std::make_shared<const Array>(std::move(labels)),
                  .name = std::move(name),
                  .classes = {},
                  .columns = {},
                  .data_source = std::move(data)};
  check_dataset(dataset);
  return dataset;
}

Dataset make_dataset(std::shared_ptr<const ItemSource> data,
                     std::shared_ptr<const ItemSource> labels, std::string name) {
  Dataset dataset{.data = {},
                  .labels = {},
                  .name = std::move(name),
                  .classes = {},
                  .columns = {},
                  .data_source = std::move(data),
                  .label_source = std::move(labels)};
  check_dataset(dataset);
  return dataset;
}

Dataset select(const Dataset& dataset, const std::vector<std::int64_t>& numbers) {
  check_dataset(dataset);
  for (const std::int64_t number : numbers)
    if (number < 0 || number >= dataset.size())
      throw TypeError(fmt::format("select: there is no item {} in '{}', which has {}", number,
                                  dataset.name, dataset.size()));
  return with_items(dataset, numbers, dataset.name);
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
