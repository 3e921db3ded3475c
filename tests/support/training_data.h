// Inputs of training tests: numbers and labels that depend on a seed alone.
#pragma once

#include <cstdint>
#include <vector>

namespace pantala::tests {

// A generator of its own, so that the numbers never change.
inline std::uint64_t next_random(std::uint64_t& state) {
  state += 0x9E3779B97F4A7C15ULL;
  std::uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

// In [-1, 1).
inline std::vector<float> random_floats(std::int64_t count, std::uint64_t seed) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = static_cast<float>(next_random(seed) >> 40) * 0x1p-23F - 1.0F;
  return values;
}

inline std::vector<std::int64_t> random_labels(std::int64_t count, std::int64_t classes,
                                               std::uint64_t seed) {
  std::vector<std::int64_t> labels(static_cast<std::size_t>(count));
  for (std::int64_t& label : labels)
    label = static_cast<std::int64_t>(next_random(seed) % static_cast<std::uint64_t>(classes));
  return labels;
}

}  // namespace pantala::tests
