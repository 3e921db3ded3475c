// Logarithms, and powers by way of a logarithm of twice the precision.
#include <limits>

#include "kir/math_parts.h"

namespace pantala::kir::math {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr std::int64_t kSqrtHalfF32 = 0x3F3504F3, kSqrtHalfF64 = 0x3FE6A09E667F3BCD;

// x = 2^k m with sqrt(1/2) <= m < sqrt(2), for normal x.
struct LogParts {
  Var k, m;
};
LogParts log_parts(const Format& f, Var x) {
  const Var bits = bits_of(f, x);
  const Var k = shr(bits - (f.mantissa == 23 ? kSqrtHalfF32 : kSqrtHalfF64), f.mantissa);
  return {k, from_bits(f, bits - shl(k, f.mantissa))};
}
// The same for any positive x; k as a float.
LogParts log_parts_of_any(const Format& f, Var x) {
  const double shift = f.mantissa + 2;
  const Var subnormal = lt(x, like(x, f.mantissa == 23 ? 0x1p-126 : 0x1p-1022));
  const LogParts parts =
      log_parts(f, select(subnormal, x * (f.mantissa == 23 ? 0x1p25 : 0x1p54), x));
  return {x.builder().cast(parts.k, f.dtype) - select(subnormal, like(x, shift), like(x, 0.0)),
          parts.m};
}

// log(1 + f) = f - (h - s (h + R)) with h = f^2/2, s = f / (2 + f) and R = s^2 p(s^2): the large
// terms are exact or small.
struct Log1pTerms {
  Var half_square, correction;  // h and s (h + R)
};
Log1pTerms log1p_terms(const Format& format, Var f) {
  const Var s = f / (f + 2.0), z = s * s, h = f * f * 0.5;
  return {h, s * fma(z, polynomial(z, table(format, tables::kLogF32, tables::kLogF64)), h)};
}

// k ln(2) + log(1 + f)
Var log_of(const Format& format, Var k, Var f) {
  const Log1pTerms t = log1p_terms(format, f);
  const Var small = fma(k, like(k, format.ln2[1]), t.correction);
  return fma(k, like(k, format.ln2[0]), f - (t.half_square - small));
}

// The values at and below `zero`, where the argument of the logarithm is 0; infinity and NaN stay.
Var with_special_values(Var x, double zero, Var result) {
  result = select(lt(x, like(x, kInfinity)), result, x);
  result = select(eq(x, like(x, zero)), like(x, -kInfinity), result);
  return select(lt(x, like(x, zero)), like(x, kNaN), result);
}

}  // namespace

Var log(Var x) {
  const Format& f = format_of(x, "log");
  const LogParts parts = log_parts_of_any(f, x);
  return with_special_values(x, 0, log_of(f, parts.k, parts.m - 1.0));
}

Var log2(Var x) {
  const Format& format = format_of(x, "log2");
  const LogParts parts = log_parts_of_any(format, x);
  const Var f = parts.m - 1.0;
  const Log1pTerms t = log1p_terms(format, f);
  const Var high = f - t.half_square, low = f - high - t.half_square + t.correction;
  const Var c = like(x, format.log2_e[0]);
  const Var a = high * c;
  const Var a_low = fma(high, c, -a) + fma(low, c, high * format.log2_e[1]);
  const Var sum = parts.k + a;  // |k| >= |a| or k = 0, so what the sum loses is exact
  return with_special_values(x, 0, sum + (parts.k - sum + a + a_low));
}

Var log1p(Var x) {
  const Format& format = format_of(x, "log1p");
  const Var u = x + 1.0, v = u - 1.0;
  const Var lost = 1.0 - (u - v) + (x - v);  // u + lost = 1 + x exactly
  const LogParts parts = log_parts(format, u);
  const Var k = x.builder().cast(parts.k, format.dtype);
  // Where 2^-k is not normal, nothing was lost that counts.
  const Var back = power_of_two(format, max(-parts.k, 1 - format.bias));
  const Var f = select(eq(parts.k, like(parts.k, 0)), x, parts.m - 1.0 + lost * back);
  const Var result = with_special_values(x, -1, log_of(format, k, f));
  // Where the function is its argument to the last bit, which keeps the sign of zero.
  return select(lt(abs(x), like(x, format.mantissa == 23 ? 0x1p-30 : 0x1p-60)), x, result);
}

namespace {

// An unevaluated sum of two floats.
struct Pair {
  Var high, low;
};
Pair sum(Var large, Var small) {
  const Var s = large + small;
  return {s, small - (s - large)};
}
Pair product(Var a, Var b) {
  const Var p = a * b;
  return {p, fma(a, b, -p)};
}
// Good to about twice the precision.
Pair product(Pair a, Pair b) {
  const Pair p = product(a.high, b.high);
  return {p.high, p.low + fma(a.high, b.low, a.low * b.high)};
}

// log2 of a positive number, 0 and infinity included: k + 2/ln(2) atanh(s), s = (m - 1) / (m + 1).
// The first two terms of the series are pairs.
Pair exact_log2(const Format& format, Var x) {
  const LogParts parts = log_parts_of_any(format, x);
  const Var f = parts.m - 1.0, d = parts.m + 1.0, d_low = parts.m - (d - 1.0);
  const auto constant = [&](const double(&c)[2]) { return Pair{like(x, c[0]), like(x, c[1])}; };
  Pair s{f / d, {}};
  s.low = fma(-s.high, d_low, fma(-s.high, d, f)) / d;
  const Pair z = product(s, s);
  const Pair cube = product(product(z, s), constant(format.third));
  const Var rest =
      s.high * z.high *
      (z.high * polynomial(z.high, table(format, tables::kAtanhF32, tables::kAtanhF64)));
  Pair a = sum(s.high, cube.high);
  a = sum(a.high, a.low + (s.low + (cube.low + rest)));
  const Pair fraction = product(a, constant(format.two_over_ln2));
  Pair result = sum(parts.k, fraction.high);
  result = sum(result.high, result.low + fraction.low);
  const Var special = select(eq(x, like(x, 0.0)), like(x, -kInfinity), x);
  const Var ordinary = bit_and(lt(like(x, 0.0), x), lt(x, like(x, kInfinity)));
  return {select(ordinary, result.high, special), select(ordinary, result.low, like(x, 0.0))};
}

}  // namespace

Var pow(Var x, Var y) {
  x = splat_like(y, x), y = splat_like(x, y);
  const Format& f = format_of(x, "pow");
  Builder& b = x.builder();
  const Var size = abs(x), zero = like(x, 0.0), one = like(x, 1.0);
  const Pair log = exact_log2(f, size);
  // y log2|x| as a pair; where it is far out of range the result is 0 or infinity, and the low part
  // may be NaN.
  const Var p = y * log.high;
  const Var limit = like(x, f.mantissa == 23 ? 160.0 : 1100.0);
  const Var low = select(gt(abs(p), limit), zero, fma(y, log.low, fma(y, log.high, -p)));
  const Var high = max(min(p, limit), -limit);
  const Rounded n = round_by_magic(f, high, 1.0);
  const Var r = (high - n.real + low) * f.ln2[0];
  Var result = scale(f, exp_polynomial(f, r), n.bits - magic_bits(f));
  result = select(eq(size, one), one, result);  // 1^infinity as well

  const Var whole = eq(b.unary(Op::floor, y), y), half = y * 0.5;
  const Var odd = bit_and(whole, ne(b.unary(Op::floor, half), half));
  const Var sign = sign_of(f, x);
  result = with_sign(f, result, select(odd, sign, like(sign, 0)));
  const Var below = bit_and(lt(x, zero), lt(size, like(x, kInfinity)));
  const Var no_root = bit_and(below, bit_xor(whole, like(whole, 1)));
  result = select(no_root, like(x, kNaN), result);
  result = select(bit_or(ne(x, x), ne(y, y)), x + y, result);
  return select(bit_or(eq(y, zero), eq(x, one)), one, result);
}

}  // namespace pantala::kir::math
