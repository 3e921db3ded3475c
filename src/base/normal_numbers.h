// Many normally distributed numbers of one draw at a time, in vectors.
#pragma once

#include <cstdint>
#include <span>

namespace pantala {

// By the method of Box and Muller, from 24 bits each for radius and angle. The radius is drawn from
// the middles of the 2^24 cells, so it is neither 0 (a zero row cannot be normalised) nor infinite.
// This function is what the numbers are.
double normal_of(std::uint32_t radius_bits, std::uint32_t angle_bits);

// mean + scale * normal_of(...) for every element, rounded to f32: the same bits, from other
// polynomials. Whatever is so near to the middle between two numbers of f32 that they could
// disagree is computed once more by normal_of().
void fill_normal(std::span<const std::uint32_t> radius_bits,
                 std::span<const std::uint32_t> angle_bits, double mean, double scale,
                 std::span<double> out);

}  // namespace pantala
