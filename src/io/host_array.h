// An array as a file gave it, in its own element type: a data set as a Literal would take eight
// times as much memory.
#pragma once

#include <cstdint>
#include <iterator>
#include <variant>
#include <vector>

#include "pantala/shape.h"

namespace pantala::io {

struct HostArray {
  // The types and their order are those of data::Array, which takes the values over without a copy.
  using Values = std::variant<std::vector<float>, std::vector<double>, std::vector<std::int32_t>,
                              std::vector<std::int64_t>, std::vector<std::uint8_t>>;
  Shape shape;
  Values values;

  DType dtype() const {
    constexpr DType kTypes[] = {f32, f64, i32, i64, u8};
    static_assert(std::size(kTypes) == std::variant_size_v<Values>);
    return kTypes[values.index()];
  }
};

}  // namespace pantala::io
