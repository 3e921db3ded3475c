// exp and what is made of it.
#include "kir/math_parts.h"

namespace pantala::kir::math {

namespace {

// x = n ln(2) + r with |r| <= ln(2)/2, for |x| below about 2^20.
struct ExpParts {
  Var n, r;
};
ExpParts exp_parts(const Format& f, Var x) {
  const Rounded n = round_by_magic(f, x, f.log2_e[0]);
  const Var r = fma(n.real, like(x, -f.ln2[1]), fma(n.real, like(x, -f.ln2[0]), x));
  return {n.bits - magic_bits(f), r};
}

// NaN stays NaN.
Var clamp(Var x, double low, double high) { return max(min(x, high), low); }

// exp for arguments whose result is normal.
Var exp_in_range(const Format& f, Var x) {
  const ExpParts parts = exp_parts(f, x);
  return exp_polynomial(f, parts.r) * power_of_two(f, parts.n);
}

}  // namespace

Var exp(Var x) {
  const Format& f = format_of(x, "exp");
  // Beyond these, the result is 0 or infinity.
  const ExpParts parts =
      exp_parts(f, f.mantissa == 23 ? clamp(x, -104.0, 89.0) : clamp(x, -746.0, 710.0));
  return scale(f, exp_polynomial(f, parts.r), parts.n);
}

Var exp2(Var x) {
  const Format& f = format_of(x, "exp2");
  const Var clamped = f.mantissa == 23 ? clamp(x, -151.0, 129.0) : clamp(x, -1076.0, 1025.0);
  const Rounded n = round_by_magic(f, clamped, 1.0);
  const Var fraction = clamped - n.real;  // exact
  const Var r = fma(fraction, like(x, f.ln2[0]), fraction * f.ln2[1]);
  return scale(f, exp_polynomial(f, r), n.bits - magic_bits(f));
}

// 2^n (1 + q) - 1 = 2 (2^(n-1) q + (2^(n-1) - 1/2)); the halves keep 2^n in range where the result
// still is.
Var expm1(Var x) {
  const Format& f = format_of(x, "expm1");
  const ExpParts parts =
      exp_parts(f, f.mantissa == 23 ? clamp(x, -30.0, 89.0) : clamp(x, -60.0, 710.0));
  const Var half = power_of_two(f, parts.n - 1);
  const Var result = fma(expm1_polynomial(f, parts.r), half, half - 0.5) * 2.0;
  // Where the function is its argument to the last bit: the halves would cost a subnormal its last
  // bit, a zero its sign.
  return select(lt(abs(x), like(x, f.mantissa == 23 ? 0x1p-30 : 0x1p-60)), x, result);
}

Var sigmoid(Var x) {
  format_of(x, "sigmoid");
  const Var small = exp(-abs(x));  // no overflow: below 0 sigmoid is exp(x) / (1 + exp(x))
  return select(lt(x, like(x, 0.0)), small, like(x, 1.0)) / (small + 1.0);
}

Var tanh(Var x) {
  const Format& f = format_of(x, "tanh");
  const Var size = abs(x), square = size * size;
  const Var near =
      fma(square * size, polynomial(square, table(f, tables::kTanhF32, tables::kTanhF64)), size);
  const Var far =
      1.0 - 2.0 / (exp_in_range(f, min(size, f.mantissa == 23 ? 10.0 : 20.0) * 2.0) + 1.0);
  return with_sign(f, select(lt(size, like(x, 0.55)), near, far), sign_of(f, x));
}

Var erf(Var x) {
  const Format& f = format_of(x, "erf");
  const Var size = abs(x);
  const Var near =
      fma(size, polynomial(size * size, table(f, tables::kErfF32, tables::kErfF64)), size);
  // From the upper limits on, 1 - erfc rounds to 1.
  const Var t = min(size, f.mantissa == 23 ? 4.0 : 6.0) - 1.0;
  const Var far =
      1.0 - exp_in_range(f, polynomial(t, table(f, tables::kErfcF32, tables::kErfcF64)));
  return with_sign(f, select(lt(size, like(x, 0.9)), near, far), sign_of(f, x));
}

Var rsqrt(Var x) {
  format_of(x, "rsqrt");
  return 1.0 / x.builder().unary(Op::sqrt, x);
}

}  // namespace pantala::kir::math
