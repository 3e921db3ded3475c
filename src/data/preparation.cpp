#include "data/preparation.h"

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
  if (one_hot.classes < 1 || one_hot.classes > kMaxClasses)
    throw TypeError(fmt::format("{}: expected 1 to {} classes", describe(one_hot), kMaxClasses));
  const auto refuse = [&](const std::string& labels) {
    throw TypeError(fmt::format("{}: needs one integer a label, but the labels of '{}' are {}",
                                describe(one_hot), dataset.name, labels));
  };
  if (!dataset.labels) refuse(dataset.label_form().str() + ", made on demand");
  const Array& labels = *dataset.labels;
  if (labels.shape.rank() != 1 || !is_integer(labels.dtype()))
    refuse(Type{labels.dtype(), labels.shape}.str());
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

// Items on their way through all steps. What lies between two steps is kept for the next item.
class ItemRun {
 public:
  ItemRun(const std::vector<Step>& steps, const DrawKey& key) : steps_(steps), key_(key) {}

  // The types of items of one size are those of the steps; others have their own until a step
  // brings them to one.
  void all(std::int64_t number, ItemForm form, const std::byte* from, std::byte* target) {
    for (std::size_t k = 0; k < steps_.size(); ++k) {
      const Step& step = steps_[k];
      if (!step.from.any_size) form = step.from;
      const ItemForm made = step.from.any_size ? transformed(step.transform, form) : step.to;
      const StepRun run{.step = step,
                        .from = {form.dtype, form.shape},
                        .to = {made.dtype, made.shape},
                        .key = key_,
                        .item = number};
      std::byte* to = k + 1 == steps_.size() ? target : room(k % 2, run.to);
      run_step(run, from, to);
      from = to;
      form = made;
    }
  }

 private:
  std::byte* room(std::size_t which, const Type& type) {
    std::vector<std::byte>& bytes = between_[which];
    const auto size = static_cast<std::size_t>(type.shape.numel() * dtype_bytes(type.dtype));
    if (bytes.size() < size) bytes.resize(size);
    return bytes.data();
  }

  const std::vector<Step>& steps_;
  const DrawKey key_;
  std::vector<std::byte> between_[2];
};

}  // namespace

Preparation::Preparation(const Dataset& dataset, const std::vector<Transform>& transforms)
    : dataset_(dataset), transforms_(transforms) {
  check_dataset(dataset);
  form_ = dataset.item_form();
  for (std::size_t number = 0; number < transforms.size(); ++number)
    add(transforms[number], static_cast<std::uint32_t>(number));
  if (form_.any_size)
    throw TypeError(fmt::format(
        "data set '{}': the items are {}, each of its own size; batches need one, as resize or "
        "crop to height x width gives it",
        dataset.name, form_.str()));
}

void Preparation::add(const Transform& transform, std::uint32_t number) {
  if (const auto* one_hot = std::get_if<OneHot>(&transform)) {
    if (classes_ > 0) throw TypeError(fmt::format("{}: a second one", describe(transform)));
    check_one_hot(dataset_, *one_hot);
    classes_ = one_hot->classes;
    return;
  }
  const ItemForm to = transformed(transform, form_);
  if (!std::holds_alternative<Reshape>(transform))
    steps_.push_back({.transform = transform, .number = number, .from = form_, .to = to});
  form_ = to;
}

Batch Preparation::make(std::span<const std::int64_t> numbers, const DrawKey& key) const {
  return {.data = make_data(numbers, key), .labels = make_labels(numbers)};
}

Array Preparation::take_data(std::span<const std::int64_t> numbers) const {
  Array data = dataset_.data ? take_items(*dataset_.data, numbers)
                             : take_items(*dataset_.data_source, numbers);
  data.shape = form_.shape.insert(0, static_cast<std::int64_t>(numbers.size()));
  return data;
}

Array Preparation::make_data(std::span<const std::int64_t> numbers, const DrawKey& key) const {
  if (steps_.empty()) return take_data(numbers);
  Array data =
      make_array(form_.dtype, form_.shape.insert(0, static_cast<std::int64_t>(numbers.size())));
  const std::size_t to_size = item_bytes(data);
  if (to_size == 0) return data;
  ItemRun run(steps_, key);
  std::byte* target = bytes_of(data).data();
  for (const std::int64_t number : numbers) {
    if (dataset_.data) {
      const std::size_t size = item_bytes(*dataset_.data);
      run.all(number, steps_.front().from,
              bytes_of(*dataset_.data).data() + static_cast<std::size_t>(number) * size, target);
    } else {
      const Array item = make_item(*dataset_.data_source, number);
      try {
        run.all(number, {item.dtype(), item.shape, false}, bytes_of(item).data(), target);
      } catch (const TypeError& error) {
        throw TypeError(fmt::format("'{}' of '{}': {}", dataset_.data_source->item_name(number),
                                    dataset_.name, error.what()));
      }
    }
    target += to_size;
  }
  return data;
}

Array Preparation::make_labels(std::span<const std::int64_t> numbers) const {
  Array labels = dataset_.labels ? take_items(*dataset_.labels, numbers)
                                 : take_items(*dataset_.label_source, numbers);
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

std::uint64_t Preparation::hash() const {
  std::uint64_t hash = hash_dataset(dataset_);
  for (const Transform& transform : transforms_) hash = fnv1a(describe(transform) + "\n", hash);
  return hash;
}

Type item_type(const Dataset& dataset, const std::vector<Transform>& transforms) {
  return Preparation(dataset, transforms).item_type();
}

}  // namespace pantala::data
