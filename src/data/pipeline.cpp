#include "data/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "data/fingerprint.h"
#include "data/items.h"
#include "pantala/error.h"

namespace pantala::data {

namespace {

constexpr std::int64_t kMaxClasses = 1 << 24;

// TypeError unless the labels can be made one-hot, ValueError for one without a class.
void check_one_hot(const Dataset& dataset, const OneHot& one_hot) {
  const Array& labels = *dataset.labels;
  if (one_hot.classes < 1 || one_hot.classes > kMaxClasses)
    throw TypeError(fmt::format("{}: expected 1 to {} classes", describe(one_hot), kMaxClasses));
  if (labels.shape.rank() != 1 || !is_integer(labels.dtype()))
    throw TypeError(fmt::format("{}: needs one integer a label, but the labels of '{}' are {}",
                                describe(one_hot), dataset.name,
                                Type{labels.dtype(), labels.shape}.str()));
  std::visit(
      [&](const auto& values) {
        for (std::size_t item = 0; item < values.size(); ++item) {
          const auto label = static_cast<std::int64_t>(values[item]);
          if (label < 0 || label >= one_hot.classes)
            throw ValueError(fmt::format("{}: the label of item {} of '{}' is {}",
                                         describe(one_hot), item, dataset.name, label));
        }
      },
      labels.values);
}

}  // namespace

Pipeline::Pipeline(const Dataset& dataset, const std::vector<Transform>& transforms)
    : dataset_(dataset), transforms_(transforms) {
  check_dataset(dataset);
  item_type_ = {dataset.data->dtype(), dataset.data->item_shape()};
  for (std::size_t number = 0; number < transforms.size(); ++number)
    add(transforms[number], static_cast<std::uint32_t>(number));
}

void Pipeline::add(const Transform& transform, std::uint32_t number) {
  if (const auto* one_hot = std::get_if<OneHot>(&transform)) {
    if (classes_ > 0) throw TypeError(fmt::format("{}: a second one", describe(transform)));
    check_one_hot(dataset_, *one_hot);
    classes_ = one_hot->classes;
    return;
  }
  const Type to = transformed(transform, item_type_);
  if (!std::holds_alternative<Reshape>(transform))
    steps_.push_back({.transform = transform, .number = number, .from = item_type_, .to = to});
  item_type_ = to;
}

Batch Pipeline::make(std::span<const std::int64_t> numbers, const DrawKey& key) const {
  return {.data = make_data(numbers, key), .labels = make_labels(numbers)};
}

Array Pipeline::make_data(std::span<const std::int64_t> numbers, const DrawKey& key) const {
  const Shape shape = item_type_.shape.insert(0, static_cast<std::int64_t>(numbers.size()));
  if (steps_.empty()) {
    Array data = take_items(*dataset_.data, numbers);
    data.shape = shape;
    return data;
  }
  Array data = make_array(item_type_.dtype, shape);
  // What lies between two steps; they take turns.
  std::size_t largest = 0;
  for (const Step& step : steps_)
    largest = std::max(
        largest, static_cast<std::size_t>(step.to.shape.numel() * dtype_bytes(step.to.dtype)));
  std::vector<std::byte> between[2];
  if (steps_.size() > 1) between[0].resize(largest);
  if (steps_.size() > 2) between[1].resize(largest);

  const std::size_t from_size = item_bytes(*dataset_.data), to_size = item_bytes(data);
  if (to_size == 0) return data;
  const std::byte* source = bytes_of(*dataset_.data).data();
  std::byte* target = bytes_of(data).data();
  for (const std::int64_t number : numbers) {
    const std::byte* from = source + static_cast<std::size_t>(number) * from_size;
    for (std::size_t k = 0; k < steps_.size(); ++k) {
      std::byte* to = k + 1 == steps_.size() ? target : between[k % 2].data();
      run_step(steps_[k], key, number, from, to);
      from = to;
    }
    target += to_size;
  }
  return data;
}

Array Pipeline::make_labels(std::span<const std::int64_t> numbers) const {
  Array labels = take_items(*dataset_.labels, numbers);
  if (classes_ == 0) return labels;
  std::vector<float> hot(numbers.size() * static_cast<std::size_t>(classes_));
  std::visit(
      [&](const auto& values) {
        for (std::size_t k = 0; k < values.size(); ++k)
          hot[k * static_cast<std::size_t>(classes_) + static_cast<std::size_t>(values[k])] = 1;
      },
      labels.values);
  return {.shape = {static_cast<std::int64_t>(numbers.size()), classes_}, .values = std::move(hot)};
}

std::uint64_t Pipeline::hash() const {
  std::uint64_t hash = hash_array(*dataset_.labels, hash_array(*dataset_.data));
  for (const Transform& transform : transforms_) hash = fnv1a(describe(transform) + "\n", hash);
  return hash;
}

Type item_type(const Dataset& dataset, const std::vector<Transform>& transforms) {
  return Pipeline(dataset, transforms).item_type();
}

}  // namespace pantala::data
