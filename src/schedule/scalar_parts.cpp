#include "schedule/scalar_parts.h"

#include <limits>

#include "kir/math_parts.h"

namespace pantala::schedule {

using kir::Var;
using kir::math::abs;
using kir::math::bit_and;
using kir::math::bit_or;
using kir::math::bits_of;
using kir::math::Format;
using kir::math::from_bits;
using kir::math::kFormatF32;
using kir::math::select;
using kir::math::shr;
using kir::math::sign_of;
using kir::math::with_sign;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// A positive finite number as an integer of mantissa + 1 bits, the first of them 1, times
// 2^(exponent - bias - mantissa).
struct Scaled {
  Var digits, exponent;
};
Scaled scaled(const Format& f, Var size) {
  const bool single = f.mantissa == 23;
  const Var subnormal = lt(size, like(size, single ? 0x1p-126 : 0x1p-1022));
  const Var normal = select(subnormal, size * (single ? 0x1p24 : 0x1p53), size);
  const Var bits = bits_of(f, normal);
  const Var leading = like(bits, std::int64_t{1} << f.mantissa);
  const Var lifted = select(subnormal, like(bits, f.mantissa + 1), like(bits, 0));
  return {bit_or(bit_and(bits, leading - 1), leading), shr(bits, f.mantissa) - lifted};
}

// Adding half a unit less the evenness of the last bit kept, then cutting: the carry runs into the
// exponent.
Var round_bits(Var bits, int dropped) {
  const std::int64_t unit = std::int64_t{1} << dropped;
  const Var odd = bit_and(shr(bits, dropped), like(bits, 1));
  return bit_and(bits + (unit / 2 - 1) + odd, like(bits, -unit));
}

}  // namespace

Var emit_remainder(Var a, Var b) {
  const Format& f = kir::math::format_of(a, "mod");
  kir::Builder& builder = a.builder();
  const Var x = abs(a), y = abs(b), zero = like(a, 0.0);
  // Otherwise there is nothing to divide, or NaN.
  const Var divides = bit_and(bit_and(lt(zero, y), le(y, x)), lt(x, like(x, kInfinity)));
  const Scaled dividend = scaled(f, x), divisor = scaled(f, y);
  const Var difference = dividend.exponent - divisor.exponent;
  const Var shifts = select(divides, difference, like(difference, 0));
  const auto subtract = [&](Var r) { return select(lt(r, divisor.digits), r, r - divisor.digits); };
  const Var most = shifts.lanes() == 1 ? shifts : builder.reduce(kir::Op::reduce_max, shifts);
  const Var rest =
      builder.loop(builder.i64(0), builder.cast(most, DType::i64), builder.i64(1),
                   {subtract(dividend.digits)}, [&](Var round, std::span<const Var> r) {
                     const Var goes_on = lt(builder.cast(round, f.integer), shifts);
                     return std::vector<Var>{select(goes_on, subtract(r[0] + r[0]), r[0])};
                   })[0];
  // A multiple of the last place of b and smaller than b: no step of the scaling rounds.
  const Var size =
      kir::math::scale(f, builder.cast(rest, f.dtype), divisor.exponent - (f.bias + f.mantissa));
  return select(divides, with_sign(f, size, sign_of(f, a)), select(lt(x, y), a, like(a, kNaN)));
}

Var emit_round_to_f16(Var x) {
  const Format& f = kFormatF32;
  const Var size = abs(x);
  // Below 2^-14 the unit is 2^-24, that of f32 between 1/2 and 1.
  const Var subnormal = size + 0.75 - 0.75;
  const Var normal = from_bits(f, round_bits(bits_of(f, size), 13));
  const Var finite = select(lt(size, like(x, 0x1p-14)), subnormal, normal);
  const Var rounded = select(lt(like(x, 65504.0), finite), like(x, kInfinity), finite);
  return select(ne(x, x), x, with_sign(f, rounded, sign_of(f, x)));
}

Var emit_round_to_bf16(Var x) {
  return select(ne(x, x), x, from_bits(kFormatF32, round_bits(bits_of(kFormatF32, x), 16)));
}

}  // namespace pantala::schedule
