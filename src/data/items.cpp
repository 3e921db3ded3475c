#include "data/items.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "base/hash.h"
#include "pantala/error.h"

namespace pantala::data {

namespace {

Array::Values make_values(DType dtype, std::size_t count) {
  switch (dtype) {
    case f32:
      return std::vector<float>(count);
    case f64:
      return std::vector<double>(count);
    case i32:
      return std::vector<std::int32_t>(count);
    case i64:
      return std::vector<std::int64_t>(count);
    case u8:
      return std::vector<std::uint8_t>(count);
    default:
      throw InternalError(fmt::format("arrays do not hold {}", dtype_name(dtype)));
  }
}

// Some items of another source.
class Selection : public ItemSource {
 public:
  Selection(std::shared_ptr<const ItemSource> source, std::span<const std::int64_t> numbers)
      : source_(std::move(source)), numbers_(numbers.begin(), numbers.end()) {}

  std::int64_t items() const override { return static_cast<std::int64_t>(numbers_.size()); }
  ItemForm form() const override { return source_->form(); }
  Array item(std::int64_t number) const override { return source_->item(at(number)); }
  std::string item_name(std::int64_t number) const override {
    return source_->item_name(at(number));
  }
  std::uint64_t hash() const override {
    std::uint64_t hash = source_->hash();
    for (const std::int64_t number : numbers_)
      hash = hash_combine(hash, static_cast<std::uint64_t>(number));
    return hash;
  }

 private:
  std::int64_t at(std::int64_t number) const {
    return numbers_.at(static_cast<std::size_t>(number));
  }

  const std::shared_ptr<const ItemSource> source_;
  const std::vector<std::int64_t> numbers_;
};

// With any_size only the last two axes may be others.
bool has_form(const Array& item, const ItemForm& form) {
  if (item.dtype() != form.dtype || item.shape.rank() != form.shape.rank()) return false;
  if (!form.any_size) return item.shape == form.shape;
  for (int axis = 0; axis < form.shape.rank() - 2; ++axis)
    if (item.shape[axis] != form.shape[axis]) return false;
  return true;
}

}  // namespace

void check_array(const Array& array, std::string_view what) {
  if (array.shape.rank() == 0)
    throw TypeError(fmt::format("{}: a scalar has no items; expected [items, ...]", what));
  const std::size_t count =
      std::visit([](const auto& values) { return values.size(); }, array.values);
  if (count != static_cast<std::size_t>(array.shape.numel()))
    throw TypeError(fmt::format("{}: the shape {} has {} elements, but there are {}", what,
                                array.shape.str(), array.shape.numel(), count));
}

Array make_array(DType dtype, const Shape& shape) {
  return {.shape = shape, .values = make_values(dtype, static_cast<std::size_t>(shape.numel()))};
}

std::span<const std::byte> bytes_of(const Array& array) {
  return std::visit([](const auto& values) { return std::as_bytes(std::span(values)); },
                    array.values);
}

std::span<std::byte> bytes_of(Array& array) {
  return std::visit([](auto& values) { return std::as_writable_bytes(std::span(values)); },
                    array.values);
}

std::size_t item_bytes(const Array& array) {
  return static_cast<std::size_t>(array.item_shape().numel() * dtype_bytes(array.dtype()));
}

Array take_items(const Array& array, std::span<const std::int64_t> numbers) {
  Array taken =
      make_array(array.dtype(), array.shape.with(0, static_cast<std::int64_t>(numbers.size())));
  const std::size_t size = item_bytes(array);
  if (size == 0) return taken;
  const std::byte* from = bytes_of(array).data();
  std::byte* to = bytes_of(taken).data();
  for (const std::int64_t number : numbers) {
    std::memcpy(to, from + static_cast<std::size_t>(number) * size, size);
    to += size;
  }
  return taken;
}

namespace {

Array slice_of(const Array& array, std::int64_t first, std::int64_t count) {
  Array part = make_array(array.dtype(), array.shape.with(0, count));
  const std::size_t size = item_bytes(array), bytes = static_cast<std::size_t>(count) * size;
  if (bytes > 0)
    std::memcpy(bytes_of(part).data(),
                bytes_of(array).data() + static_cast<std::size_t>(first) * size, bytes);
  return part;
}

}  // namespace

Batch slice_of(const Batch& batch, std::int64_t first, std::int64_t count) {
  Batch part{.data = slice_of(batch.data, first, count),
             .labels = slice_of(batch.labels, first, count)};
  for (const NamedArray& other : batch.more)
    part.more.push_back({other.name, slice_of(other.array, first, count)});
  part.whole = batch.whole_items();
  part.first = batch.first + first;
  return part;
}

std::shared_ptr<const ItemSource> select_items(std::shared_ptr<const ItemSource> source,
                                               std::span<const std::int64_t> numbers) {
  return std::make_shared<const Selection>(std::move(source), numbers);
}

Array make_item(const ItemSource& source, std::int64_t number) {
  Array item = source.item(number);
  const std::size_t count =
      std::visit([](const auto& values) { return values.size(); }, item.values);
  if (!has_form(item, source.form()) || count != static_cast<std::size_t>(item.shape.numel()))
    throw TypeError(fmt::format("'{}': is {} with {} elements; the items of its data set are {}",
                                source.item_name(number), Type{item.dtype(), item.shape}.str(),
                                count, source.form().str()));
  return item;
}

Array take_items(const ItemSource& source, std::span<const std::int64_t> numbers) {
  const ItemForm form = source.form();
  if (form.any_size)
    throw TypeError(fmt::format("items of any size ({}) make no batch", form.str()));
  Array taken =
      make_array(form.dtype, form.shape.insert(0, static_cast<std::int64_t>(numbers.size())));
  const std::size_t size = item_bytes(taken);
  if (size == 0) return taken;
  std::byte* to = bytes_of(taken).data();
  for (const std::int64_t number : numbers) {
    const Array item = make_item(source, number);
    std::memcpy(to, bytes_of(item).data(), size);
    to += size;
  }
  return taken;
}

}  // namespace pantala::data
