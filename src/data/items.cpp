#include "data/items.h"

#include <fmt/format.h>

#include <cstring>

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

}  // namespace pantala::data
