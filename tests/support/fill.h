// The numbers that the recorded truths are made from: a pure function of a name and an element's index (fixtures/fill.py in C++).
#pragma once

#include <string_view>

#include "base/hash.h"
#include "pantala/literal.h"

namespace pantala::testing {

inline std::uint64_t fill_bits(std::string_view name, std::int64_t index) {
  return mix64(fnv1a(name) + (static_cast<std::uint64_t>(index) + 1) * 0x9E3779B97F4A7C15);
}

// Uniform in [offset - bound, offset + bound), with two roundings to f32.
inline Literal fill(std::string_view name, const Shape& shape, double bound = 1, double offset = 0, DType dtype = f32) {
  Literal values(Type{dtype, shape});
  for (std::int64_t k = 0; k < values.numel(); ++k) {
    const float unit = static_cast<float>(fill_bits(name, k) >> 40) * 0x1p-24f;
    const float scaled = (unit - 0.5f) * static_cast<float>(2 * bound);
    values.f()[k] = offset == 0 ? scaled : static_cast<float>(offset) + scaled;
  }
  return values;
}

// Uniform in [low, high).
inline Literal fill_int(std::string_view name, const Shape& shape, std::int64_t low, std::int64_t high, DType dtype = i64) {
  Literal values(Type{dtype, shape});
  for (std::int64_t k = 0; k < values.numel(); ++k)
    values.i()[k] = low + static_cast<std::int64_t>((fill_bits(name, k) >> 33) % static_cast<std::uint64_t>(high - low));
  return values;
}

}  // namespace pantala::testing
