// Stable 64-bit hashing: the same on every machine and run, so that it can key files.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string_view>

namespace pantala {

constexpr std::uint64_t kHashSeed = 0xCBF29CE484222325;

constexpr std::uint64_t fnv1a(std::string_view text, std::uint64_t hash = kHashSeed) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  return hash;
}

// SplitMix64's finaliser.
constexpr std::uint64_t mix64(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

constexpr std::uint64_t hash_combine(std::uint64_t seed, std::uint64_t value) {
  return mix64(seed * 0x9E3779B97F4A7C15 + value);
}
// Of many bytes, eight at a time.
inline std::uint64_t hash_bytes(std::span<const std::byte> bytes, std::uint64_t hash = kHashSeed) {
  while (!bytes.empty()) {
    std::uint64_t word = 0;
    const std::size_t count = std::min(bytes.size(), sizeof(word));
    std::memcpy(&word, bytes.data(), count);
    hash = std::rotl((hash ^ word) * 0x9E3779B97F4A7C15, 29);
    bytes = bytes.subspan(count);
  }
  return mix64(hash);
}
// The bits of a double: -0 is not +0, and all NaNs are one (text has one name for them).
inline std::uint64_t hash_double(double value) {
  return std::bit_cast<std::uint64_t>(std::isnan(value) ? std::numeric_limits<double>::quiet_NaN()
                                                        : value);
}

}  // namespace pantala
