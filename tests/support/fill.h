// Shorthands for the numbers that the recorded truths are made from.
#pragma once

#include <string>

#include "tools/fixtures/fill.h"

namespace pantala::tests {

// f32, uniform in [-bound, bound).
inline Literal fill(const std::string& name, const Shape& shape, double bound = 1) {
  return tools::make({.name = name, .shape = shape, .bound = bound});
}
// i64, uniform in [low, high).
inline Literal fill_int(const std::string& name, const Shape& shape, std::int64_t low,
                        std::int64_t high) {
  return tools::make({.name = name, .shape = shape, .integer = true, .low = low, .high = high});
}

}  // namespace pantala::tests
