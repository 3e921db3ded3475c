#include "pantala/shape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "pantala/error.h"

namespace pantala {

Shape::Shape(std::span<const std::int64_t> sizes) {
  if (sizes.size() > kMaxRank) throw TypeError(fmt::format("a shape has at most {} axes, got {}", kMaxRank, sizes.size()));
  // Zero sizes are left out of the product: a shape with a zero must not hide a product that would overflow elsewhere.
  std::int64_t product = 1;
  for (const std::int64_t size : sizes) {
    if (size < 0) throw TypeError(fmt::format("a size cannot be negative: [{}]", fmt::join(sizes, ",")));
    if (size != 0 && __builtin_mul_overflow(product, size, &product)) product = INT64_MAX;
    if (product > kMaxElements) throw TypeError(fmt::format("too many elements: [{}]", fmt::join(sizes, ",")));
  }
  std::copy(sizes.begin(), sizes.end(), sizes_.begin());
  rank_ = static_cast<int>(sizes.size());
}

std::int64_t Shape::numel() const {
  std::int64_t product = 1;
  for (const std::int64_t size : *this) product *= size;
  return product;
}

std::vector<std::int64_t> Shape::strides() const {
  std::vector<std::int64_t> strides(static_cast<std::size_t>(rank_));
  std::int64_t stride = 1;
  for (int axis = rank_ - 1; axis >= 0; --axis) {
    strides[axis] = stride;
    stride *= sizes_[axis];
  }
  return strides;
}

Shape Shape::with(int axis, std::int64_t size) const {
  std::vector<std::int64_t> sizes = vec();
  sizes[axis] = size;
  return Shape(sizes);
}

Shape Shape::without(int axis) const {
  std::vector<std::int64_t> sizes = vec();
  sizes.erase(sizes.begin() + axis);
  return Shape(sizes);
}

Shape Shape::insert(int axis, std::int64_t size) const {
  std::vector<std::int64_t> sizes = vec();
  sizes.insert(sizes.begin() + axis, size);
  return Shape(sizes);
}

std::string Shape::str() const { return fmt::format("[{}]", fmt::join(begin(), end(), ",")); }

bool operator==(const Shape& a, const Shape& b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

bool broadcast_shapes(const Shape& a, const Shape& b, Shape& result) {
  const int rank = std::max(a.rank(), b.rank());
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(rank));
  for (int k = 1; k <= rank; ++k) {
    const std::int64_t x = k <= a.rank() ? a[a.rank() - k] : 1;
    const std::int64_t y = k <= b.rank() ? b[b.rank() - k] : 1;
    if (x != y && x != 1 && y != 1) return false;
    sizes[rank - k] = x == 1 ? y : x;
  }
  result = Shape(sizes);
  return true;
}

std::string Type::str() const { return fmt::format("{}{}", dtype_name(dtype), shape.str()); }

}  // namespace pantala
