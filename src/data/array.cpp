#include <type_traits>

#include "pantala/data.h"

namespace pantala::data {

DType Array::dtype() const {
  constexpr DType kDTypes[] = {f32, f64, i32, i64, u8};
  static_assert(std::size(kDTypes) == std::variant_size_v<Values>);
  return kDTypes[values.index()];
}

Shape Array::item_shape() const {
  const std::vector<std::int64_t>& sizes = shape.vec();
  return sizes.empty() ? Shape{} : Shape(std::vector<std::int64_t>(sizes.begin() + 1, sizes.end()));
}

HostElements Array::elements() const {
  return std::visit(
      [](const auto& list) -> HostElements {
        using Element = typename std::decay_t<decltype(list)>::value_type;
        return std::span<const Element>(list);
      },
      values);
}

}  // namespace pantala::data
