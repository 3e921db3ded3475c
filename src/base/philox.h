// Philox4x32-10 (Salmon et al., 2011): a counter-based generator. The k-th number is a pure
// function of key and counter, so any device can draw any element of any stream, in any order, and
// get the same bits.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace pantala {

using PhiloxBlock = std::array<std::uint32_t, 4>;

// One block of four numbers for a 128-bit counter and a 64-bit key.
PhiloxBlock philox4x32(PhiloxBlock counter, std::array<std::uint32_t, 2> key);

// The 32 bits of element `index` in stream `stream` of draw `draw` under `seed`.
std::uint32_t random_bits(std::uint64_t seed, std::uint64_t draw, std::uint32_t stream,
                          std::uint64_t index);

// The same for the elements from `first` on; faster than one by one.
void random_bits(std::uint64_t seed, std::uint64_t draw, std::uint32_t stream, std::uint64_t first,
                 std::span<std::uint32_t> out);

// The top 24 bits as a number in [0, 1), exact in f32.
inline double bits_to_unit(std::uint32_t bits) { return static_cast<double>(bits >> 8) * 0x1p-24; }

}  // namespace pantala
