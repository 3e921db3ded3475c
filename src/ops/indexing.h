// Helpers for the meanings of ops that move or combine whole tensors: walking over indices in
// row-major order.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "pantala/literal.h"

namespace pantala::ops {

using Index = std::vector<std::int64_t>;

// Calls f(index, flat) for every position of a shape, in row-major order.
template <class F>
void for_each_index(const Shape& shape, F&& f) {
  Index index(static_cast<std::size_t>(shape.rank()), 0);
  const std::int64_t count = shape.numel();
  for (std::int64_t flat = 0; flat < count; ++flat) {
    f(static_cast<const Index&>(index), flat);
    for (int axis = shape.rank() - 1; axis >= 0 && ++index[axis] == shape[axis]; --axis)
      index[axis] = 0;
  }
}

inline std::int64_t flat_of(const Index& index, const std::vector<std::int64_t>& strides) {
  std::int64_t flat = 0;
  for (std::size_t axis = 0; axis < strides.size(); ++axis) flat += index[axis] * strides[axis];
  return flat;
}

// A literal whose element at each index is the source element that `source(index)` names, or `fill`
// where it names none.
template <class F>
Literal gather_from(const Literal& in, const Shape& shape, F&& source, double fill = 0) {
  Literal out(Type{in.dtype(), shape});
  for_each_index(shape, [&](const Index& index, std::int64_t flat) {
    const std::optional<std::int64_t> from = source(index);
    if (out.is_float())
      out.f()[flat] = from ? in.f()[*from] : fill;
    else
      out.i()[flat] = from ? in.i()[*from] : wrap_to(in.dtype(), static_cast<std::int64_t>(fill));
  });
  return out;
}

}  // namespace pantala::ops
