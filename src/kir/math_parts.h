// What the functions of kir/math.h share: the layout of the floats, polynomials, scaling by powers
// of two.
#pragma once

#include <span>

#include "kir/builder.h"
#include "kir/math.h"
#include "kir/math_tables.h"
#include "pantala/error.h"

namespace pantala::kir::math {

// ln(2), pi/2, ... as sums of numbers of the dtype, each the rounding of what the ones before
// leave.
struct Format {
  DType dtype, integer;
  int mantissa;       // bits after the leading one
  std::int64_t bias;  // of the exponent
  // 1.5 * 2^mantissa: adding it rounds to an integer, which then stands in the low bits.
  double magic;
  double ln2[2], log2_e[2], two_over_ln2[2], third[2], half_pi[3];
};
inline constexpr Format kFormatF32{.dtype = DType::f32,
                                   .integer = DType::i32,
                                   .mantissa = 23,
                                   .bias = 127,
                                   .magic = 0x1.8p23,
                                   .ln2 = {0x1.62e43p-1, -0x1.05c61p-29},
                                   .log2_e = {0x1.715476p+0, 0x1.4ae0cp-26},
                                   .two_over_ln2 = {0x1.715476p+1, 0x1.4ae0cp-25},
                                   .third = {0x1.555556p-2, -0x1.555556p-27},
                                   .half_pi = {0x1.921fb6p+0, -0x1.777a5cp-25, -0x1.ee59dap-50}};
inline constexpr Format kFormatF64{
    .dtype = DType::f64,
    .integer = DType::i64,
    .mantissa = 52,
    .bias = 1023,
    .magic = 0x1.8p52,
    .ln2 = {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56},
    .log2_e = {0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56},
    .two_over_ln2 = {0x1.71547652b82fep+1, 0x1.777d0ffda0d24p-55},
    .third = {0x1.5555555555555p-2, 0x1.5555555555555p-56},
    .half_pi = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54, -0x1.f1976b7ed8fbcp-110}};

inline const Format& format_of(Var x, const char* function) {
  if (x.dtype() == DType::f32) return kFormatF32;
  if (x.dtype() == DType::f64) return kFormatF64;
  throw InternalError(std::string(function) + " of " + x.type().str() +
                      ": it is made for f32 and f64");
}

template <class Table32, class Table64>
std::span<const double> table(const Format& format, const Table32& single, const Table64& twice) {
  return format.dtype == DType::f32 ? std::span<const double>(single)
                                    : std::span<const double>(twice);
}

inline Var gt(Var a, Var b) { return lt(b, a); }
inline Var abs(Var x) { return x.builder().unary(Op::abs, x); }
inline Var fma(Var a, Var b, Var c) { return a.builder().fma(a, b, c); }
inline Var select(Var condition, Var a, Var b) {
  return condition.builder().select(condition, a, b);
}
inline Var shl(Var x, std::int64_t by) { return x.builder().binary(Op::shl, x, like(x, by)); }
inline Var shr(Var x, std::int64_t by) { return x.builder().binary(Op::shr, x, like(x, by)); }
inline Var bit_and(Var a, Var b) { return a.builder().binary(Op::bit_and, a, b); }
inline Var bit_or(Var a, Var b) { return a.builder().binary(Op::bit_or, a, b); }
inline Var bit_xor(Var a, Var b) { return a.builder().binary(Op::bit_xor, a, b); }
inline Var bits_of(const Format& f, Var x) { return x.builder().bitcast(x, f.integer); }
inline Var from_bits(const Format& f, Var x) { return x.builder().bitcast(x, f.dtype); }

// c0 + c1 v + c2 v^2 + ...
inline Var polynomial(Var v, std::span<const double> coefficients) {
  Var sum = like(v, coefficients.back());
  for (std::size_t k = coefficients.size() - 1; k-- > 0;)
    sum = fma(sum, v, like(v, coefficients[k]));
  return sum;
}

// 2^n for integers n with a normal result.
inline Var power_of_two(const Format& f, Var n) {
  return from_bits(f, shl(n + f.bias, f.mantissa));
}
// x 2^n, rounded once, where 2^n itself may be out of range.
inline Var scale(const Format& f, Var x, Var n) {
  const Var half = shr(n, 1);
  return x * power_of_two(f, half) * power_of_two(f, n - half);
}

// The sign bit alone.
inline Var sign_of(const Format& f, Var x) {
  const Var bits = bits_of(f, x);
  return bit_and(bits, like(bits, std::int64_t{-1} << (f.mantissa == 23 ? 31 : 63)));
}
// A number that is not negative, with the sign of another.
inline Var with_sign(const Format& f, Var size, Var sign) {
  return from_bits(f, bit_or(bits_of(f, size), sign));
}

// An integer near x as float and as integer, for |x| < 2^(mantissa - 1).
struct Rounded {
  Var real, bits;  // bits: the integer plus those of the magic number
};
inline Rounded round_by_magic(const Format& f, Var x, double factor) {
  const Var shifted = fma(x, like(x, factor), like(x, f.magic));
  return {shifted - f.magic, bits_of(f, shifted)};
}
inline std::int64_t magic_bits(const Format& f) {
  return f.mantissa == 23 ? 0x4B400000 : 0x4338000000000000;
}

// exp(r) - 1 and exp(r) for |r| <= ln(2)/2.
inline Var expm1_polynomial(const Format& f, Var r) {
  return fma(r * r, polynomial(r, table(f, tables::kExpF32, tables::kExpF64)), r);
}
inline Var exp_polynomial(const Format& f, Var r) { return expm1_polynomial(f, r) + 1.0; }

}  // namespace pantala::kir::math
