// sin and cos.
#include <limits>

#include "kir/math_parts.h"

namespace pantala::kir::math {

namespace {

// |x| = q pi/2 + r with |r| <= about pi/4, as far as q matters: its two lowest bits.
struct Quadrant {
  Var q, r;
};

// Three parts of pi/2: the first difference is exact, the second rounds what the third then
// corrects. For sizes up to far_limit.
Quadrant reduce_near(const Format& f, Var size) {
  const Rounded n = round_by_magic(f, size, 0x1.45f306dc9c883p-1);
  Var r = size;
  for (const double part : f.half_pi) r = fma(n.real, like(r, -part), r);
  return {n.bits, r};
}
double far_limit(const Format& f) { return f.mantissa == 23 ? 0x1p17 : 0x1p30; }

// Integer arithmetic on words of the float's width, unsigned although the type is signed.
struct Words {
  int width;
  Var least(Var model) const { return like(model, std::int64_t{-1} << (width - 1)); }
  Var below(Var a, Var b) const { return lt(bit_xor(a, least(a)), bit_xor(b, least(b))); }
  // x / 2^by, 1 <= by <= width.
  Var shift_right(Var x, Var by) const {
    const Var halved = bit_and(shr(x, 1), bit_xor(least(x), like(x, -1)));
    return x.builder().binary(Op::shr, halved, by - 1);
  }
  Var shift_right(Var x, int by) const { return shift_right(x, like(x, by)); }
  // `width` bits of high:low, starting `by` bits down, 0 <= by < width.
  Var window(Var high, Var low, Var by) const {
    return bit_or(high.builder().binary(Op::shl, high, by), shift_right(low, width - by));
  }
};

// Payne and Hanek's reduction: |x| = m 2^e with an integer m. Of the bits of 2/pi those that make
// multiples of 4 are skipped; the next three words times m are |x| 2/pi modulo 4, with enough bits
// left behind the point after any cancellation.
Quadrant reduce_far(const Format& f, Var size) {
  Builder& b = size.builder();
  const Words w{f.mantissa == 23 ? 32 : 64};
  const std::span<const std::int64_t> table =
      f.mantissa == 23 ? std::span<const std::int64_t>(tables::kTwoOverPiF32)
                       : std::span<const std::int64_t>(tables::kTwoOverPiF64);
  const Var bits = bits_of(f, size);
  const Var leading = like(bits, std::int64_t{1} << f.mantissa);
  const Var m = bit_or(bit_and(bits, leading - 1), leading);
  // e - 2, and the table's word of zeros.
  const Var skipped = shr(bits, f.mantissa) - (f.bias + f.mantissa + 2 - w.width);
  const Var first = shr(skipped, w.width == 32 ? 5 : 6),
            by = bit_and(skipped, like(bits, w.width - 1));
  const auto word = [&](std::size_t k) {
    Var chosen = like(bits, table[k]);
    for (std::size_t i = 1; i + 3 < table.size(); ++i)
      chosen = select(eq(first, like(first, static_cast<std::int64_t>(i))),
                      like(bits, table[i + k]), chosen);
    return chosen;
  };
  const Var w0 = word(0), w1 = word(1), w2 = word(2), w3 = word(3);
  const Var v0 = w.window(w0, w1, by), v1 = w.window(w1, w2, by), v2 = w.window(w2, w3, by);
  // The low three words of m v.
  const auto upper = [&](Var v) { return b.binary(Op::mulhi, m, v); };
  const Var p2 = m * v2, c2 = upper(v2), p1 = m * v1 + c2;
  const Var carry = select(w.below(p1, c2), like(bits, 1), like(bits, 0));
  const Var p0 = m * v0 + (upper(v1) + carry);
  // Two bits of quadrant; what follows is a fraction, taken from the nearer side.
  const Var two = like(bits, 2);
  const Var f0 = w.window(p0, p1, two), f1 = w.window(p1, p2, two);
  const Var past_half = lt(f0, like(f0, 0));
  const Var q = w.shift_right(p0, w.width - 2) + select(past_half, like(bits, 1), like(bits, 0));
  const Var ones = like(bits, -1);
  const Var a0 = select(past_half, bit_xor(f0, ones), f0),
            a1 = select(past_half, bit_xor(f1, ones), f1);  // off by one in the last of many bits
  // Quarters of the two words are exact as floats; their sum as a pair, times pi/2.
  const int half = w.width / 2;
  const double unit = half == 16 ? 0x1p-16 : 0x1p-32;
  const auto top = [&](Var v) { return b.cast(w.shift_right(v, half), f.dtype); };
  const auto bottom = [&](Var v) {
    return b.cast(bit_and(v, like(v, (std::int64_t{1} << half) - 1)), f.dtype);
  };
  const Var t0 = top(a0) * unit, t1 = bottom(a0) * (unit * unit),
            t2 = top(a1) * (unit * unit * unit), t3 = bottom(a1) * (unit * unit * unit * unit);
  const Var s = t0 + t1, s_low = t1 - (s - t0) + (t2 + t3);
  const Var high = s + s_low, low = s_low - (high - s);
  const Var c = like(high, f.half_pi[0]);
  const Var r = high * c;
  const Var exact = r + (fma(high, c, -r) + fma(low, c, high * f.half_pi[1]));
  return {q, select(past_half, -exact, exact)};
}

Quadrant reduce(const Format& f, Var size) {
  Builder& b = size.builder();
  const Quadrant near = reduce_near(f, size);
  // Infinity and NaN are NaN after the first reduction already.
  const Var far = bit_and(gt(size, like(size, far_limit(f))),
                          lt(size, like(size, std::numeric_limits<double>::infinity())));
  const Var some = far.lanes() == 1 ? far : b.reduce(Op::reduce_max, far);
  const std::vector<Var> chosen = b.branch(
      some,
      [&] {
        const Quadrant q = reduce_far(f, size);
        return std::vector<Var>{select(far, q.q, near.q), select(far, q.r, near.r)};
      },
      [&] { return std::vector<Var>{near.q, near.r}; });
  return {chosen[0], chosen[1]};
}

// sin(q pi/2 + r)
Var sine_of(const Format& f, Quadrant x) {
  const Var z = x.r * x.r;
  const Var sine = fma(z * x.r, polynomial(z, table(f, tables::kSinF32, tables::kSinF64)), x.r);
  const Var cosine = fma(z * z, polynomial(z, table(f, tables::kCosF32, tables::kCosF64)),
                         fma(z, like(z, -0.5), like(z, 1.0)));
  const Var swapped = ne(bit_and(x.q, like(x.q, 1)), like(x.q, 0));
  const Var sign = shl(bit_and(x.q, like(x.q, 2)), f.mantissa == 23 ? 30 : 62);
  return from_bits(f, bit_xor(bits_of(f, select(swapped, cosine, sine)), sign));
}

}  // namespace

Var sin(Var x) {
  const Format& f = format_of(x, "sin");
  const Var sine = sine_of(f, reduce(f, abs(x)));
  return from_bits(f, bit_xor(bits_of(f, sine), sign_of(f, x)));
}

Var cos(Var x) {
  const Format& f = format_of(x, "cos");
  const Quadrant quadrant = reduce(f, abs(x));
  return sine_of(f, {quadrant.q + 1, quadrant.r});
}

}  // namespace pantala::kir::math
