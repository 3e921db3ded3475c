// Normal numbers in vectors: the bits of their definition, whatever the length, mean and scale.
#include "base/normal_numbers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/philox.h"

namespace pantala {
namespace {

std::vector<std::uint32_t> draw(std::uint32_t stream, std::size_t count) {
  std::vector<std::uint32_t> bits(count);
  random_bits(7, 0, stream, 3, bits);
  return bits;
}

void expect_defined_bits(const std::vector<std::uint32_t>& radii,
                         const std::vector<std::uint32_t>& angles, double mean, double scale) {
  std::vector<double> values(radii.size());
  fill_normal(radii, angles, mean, scale, values);
  for (std::size_t k = 0; k < values.size(); ++k)
    ASSERT_EQ(values[k], static_cast<double>(
                             static_cast<float>(mean + scale * normal_of(radii[k], angles[k]))))
        << "element " << k << " of bits " << radii[k] << " and " << angles[k];
}

TEST(NormalNumbers, have_the_bits_of_their_definition) {
  for (const std::size_t count : {1, 15, 255, 257, 1 << 20})
    expect_defined_bits(draw(0, count), draw(1, count), 0, 0.02);
  expect_defined_bits(draw(0, 10000), draw(1, 10000), 0.3, 1);
  expect_defined_bits(draw(0, 10000), draw(1, 10000), -1e-3, 1e-3);
}

// Of quarters of a turn, what rounding leaves of pi/2 decides.
TEST(NormalNumbers, have_them_at_the_ends_and_at_quarters_of_a_turn) {
  std::vector<std::uint32_t> radii, angles;
  for (const std::uint32_t radius : {0U, 1U << 8, 0x80000000U, 0xFFFFFF00U, 0xFFFFFFFFU})
    for (const std::uint32_t quarter : {0U, 1U, 2U, 3U})
      for (const std::uint32_t beside : {0xFFFFFF00U, 0U, 0x100U}) {
        radii.push_back(radius);
        angles.push_back((quarter << 30) + beside);
      }
  expect_defined_bits(radii, angles, 0, 1);
  expect_defined_bits(radii, angles, 0.5, 0);
}

}  // namespace
}  // namespace pantala
