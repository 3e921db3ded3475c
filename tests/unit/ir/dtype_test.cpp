// Element types: names, rounding to the nearest representable number, wrapping of integers.
#include "pantala/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace pantala {
namespace {

constexpr DType kAll[] = {f32, f64, f16, bf16, i32, i64, u8, boolean};

TEST(DType, names_read_back) {
  for (const DType t : kAll) EXPECT_EQ(parse_dtype(dtype_name(t)), t);
  EXPECT_EQ(dtype_name(boolean), "bool");
  EXPECT_EQ(parse_dtype("float"), std::nullopt);
  EXPECT_EQ(parse_dtype(""), std::nullopt);
}

TEST(DType, kinds_and_sizes) {
  for (const DType t : {f32, f64, f16, bf16}) EXPECT_TRUE(is_float(t) && !is_integer(t));
  for (const DType t : {i32, i64, u8}) EXPECT_TRUE(is_integer(t) && !is_float(t));
  EXPECT_FALSE(is_float(boolean) || is_integer(boolean));
  EXPECT_EQ(dtype_bytes(f16), 2);
  EXPECT_EQ(dtype_bytes(bf16), 2);
  EXPECT_EQ(dtype_bytes(f32), 4);
  EXPECT_EQ(dtype_bytes(i64), 8);
  EXPECT_EQ(dtype_bytes(boolean), 1);
}

TEST(RoundTo, keeps_zeros_infinities_and_nan) {
  for (const DType t : {f32, f64, f16, bf16}) {
    EXPECT_TRUE(std::signbit(round_to(t, -0.0))) << dtype_name(t);
    EXPECT_EQ(round_to(t, INFINITY), INFINITY);
    EXPECT_EQ(round_to(t, -INFINITY), -INFINITY);
    EXPECT_TRUE(std::isnan(round_to(t, NAN)));
    EXPECT_EQ(round_to(t, 1.5), 1.5);
  }
}

TEST(RoundTo, f32_rounds_as_the_machine_does) {
  for (const double x : {0.1, 1e-40, 3.4e38, 1e39, 1.0000000596046448, -7.0064923216240854e-46})
    EXPECT_EQ(round_to(f32, x), static_cast<double>(static_cast<float>(x)));
  EXPECT_EQ(round_to(f32, 1e39), INFINITY);
  EXPECT_EQ(round_to(f64, 0.1), 0.1);
}

TEST(RoundTo, f16_ties_go_to_even) {
  EXPECT_EQ(round_to(f16, 1 + 0x1p-11), 1.0);  // halfway to 1 + 2^-10: even mantissa below
  EXPECT_EQ(round_to(f16, 1 + 3 * 0x1p-11), 1 + 0x1p-9);    // halfway, even above
  EXPECT_EQ(round_to(f16, 1 + 0x1.0001p-11), 1 + 0x1p-10);  // just above halfway
  EXPECT_EQ(round_to(f16, 2049), 2048);
  EXPECT_EQ(round_to(f16, 2051), 2052);
  EXPECT_EQ(round_to(f16, -2051), -2052);
}

TEST(RoundTo, f16_overflows_from_65520_on) {
  EXPECT_EQ(round_to(f16, 65504), 65504);
  EXPECT_EQ(round_to(f16, 65519.999), 65504);
  EXPECT_EQ(round_to(f16, 65520), INFINITY);
  EXPECT_EQ(round_to(f16, -65520), -INFINITY);
}

TEST(RoundTo, f16_has_subnormals) {
  EXPECT_EQ(round_to(f16, 0x1p-14), 0x1p-14);
  EXPECT_EQ(round_to(f16, 0x1p-24), 0x1p-24);
  EXPECT_EQ(round_to(f16, 0x1p-25), 0.0);  // tie: even is zero
  EXPECT_EQ(round_to(f16, 0x1.0001p-25), 0x1p-24);
  EXPECT_EQ(round_to(f16, 3 * 0x1p-25), 2 * 0x1p-24);  // tie between 1 and 2 quanta
  EXPECT_EQ(round_to(f16, 0x1p-14 - 0x1p-26), 0x1p-14);
  EXPECT_TRUE(std::signbit(round_to(f16, -0x1p-30)));
}

TEST(RoundTo, bf16_ties_overflow_and_subnormals) {
  EXPECT_EQ(round_to(bf16, 1 + 0x1p-8), 1.0);
  EXPECT_EQ(round_to(bf16, 1 + 3 * 0x1p-8), 1 + 0x1p-6);
  EXPECT_EQ(round_to(bf16, 257), 256);
  EXPECT_EQ(round_to(bf16, 259), 260);
  EXPECT_EQ(round_to(bf16, 0x1.FEp127), 0x1.FEp127);
  EXPECT_EQ(round_to(bf16, 0x1.FEFFp127), 0x1.FEp127);
  EXPECT_EQ(round_to(bf16, 0x1.FFp127), INFINITY);
  EXPECT_EQ(round_to(bf16, 0x1p-133), 0x1p-133);
  EXPECT_EQ(round_to(bf16, 0x1p-134), 0.0);
  EXPECT_EQ(round_to(bf16, 3 * 0x1p-134), 0x1p-132);
}

// Every f16 is its own rounding, and a point between two neighbours goes to the nearer.
TEST(RoundTo, f16_is_a_projection_onto_all_halves) {
  for (int bits = 0; bits < 0x7C00; ++bits) {
    const int exponent = bits >> 10, mantissa = bits & 0x3FF;
    const double value =
        exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
    const double quantum = std::ldexp(1.0, std::max(exponent, 1) - 25);
    ASSERT_EQ(round_to(f16, value), value) << bits;
    ASSERT_EQ(round_to(f16, value + 0.25 * quantum), value) << bits;
  }
}

TEST(WrapTo, keeps_the_low_bits) {
  EXPECT_EQ(wrap_to(i32, std::int64_t{1} << 31), -(std::int64_t{1} << 31));
  EXPECT_EQ(wrap_to(i32, (std::int64_t{1} << 32) + 5), 5);
  EXPECT_EQ(wrap_to(i32, -1), -1);
  EXPECT_EQ(wrap_to(u8, 256), 0);
  EXPECT_EQ(wrap_to(u8, -1), 255);
  EXPECT_EQ(wrap_to(i64, INT64_MIN), INT64_MIN);
  EXPECT_EQ(wrap_to(boolean, 0), 0);
  EXPECT_EQ(wrap_to(boolean, -7), 1);
  EXPECT_EQ(wrap_to(boolean, std::int64_t{1} << 40), 1);
}

}  // namespace
}  // namespace pantala
