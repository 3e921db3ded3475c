// random_bits as kernel code: Philox4x32-10 lane by lane, without branches.
#include <array>

#include "pantala/error.h"
#include "schedule/scalar_ops.h"

namespace pantala::schedule {

using kir::Builder;
using kir::Op;
using kir::Var;

namespace {

// A 32-bit word as the i32 of the same bits.
std::int64_t word(std::int64_t bits) { return wrap_to(DType::i32, bits); }

Var low_half(Var x) { return x.builder().cast(x, DType::i32); }
Var high_half(Var x) { return low_half(x.builder().binary(Op::shr, x, like(x, 32))); }
Var exclusive_or(Var a, Var b) {
  return a.builder().binary(Op::bit_xor, splat_like(b, a), splat_like(a, b));
}
Var shift_right(Var x, int by) {
  // Unsigned: what the sign shifts in is cut off.
  const Var shifted = x.builder().binary(Op::shr, x, like(x, by));
  return x.builder().binary(Op::bit_and, shifted, like(x, INT64_MAX >> (by - 1)));
}

// base/hash.h's mix64.
Var mix(Var z) {
  z = exclusive_or(z, shift_right(z, 30)) * static_cast<std::int64_t>(0xBF58476D1CE4E5B9);
  z = exclusive_or(z, shift_right(z, 27)) * static_cast<std::int64_t>(0x94D049BB133111EB);
  return exclusive_or(z, shift_right(z, 31));
}

using Counter = std::array<Var, 4>;

Counter philox(Counter c, Var key0, Var key1) {
  const Var m0 = like(c[0], word(0xD2511F53)), m1 = like(c[0], word(0xCD9E8D57));
  for (int round = 0; round < 10; ++round) {
    const auto upper = [](Var a, Var b) { return a.builder().binary(Op::mulhi, a, b); };
    c = {exclusive_or(exclusive_or(upper(m1, c[2]), c[1]), key0), m1 * c[2],
         exclusive_or(exclusive_or(upper(m0, c[0]), c[3]), key1), m0 * c[0]};
    key0 = key0 + word(0x9E3779B9);
    key1 = key1 + word(0xBB67AE85);
  }
  return c;
}

void check(const char* name, Var v, bool may_be_vector) {
  if (v.dtype() != DType::i64 || (!may_be_vector && v.lanes() != 1))
    throw InternalError(std::string("random_bits: ") + name + " is " + v.type().str() + ", not " +
                        (may_be_vector ? "a number or vector of i64" : "an i64"));
}

}  // namespace

Var emit_random_bits(Builder& b, Var seed, Var draw, Var stream, Var element) {
  check("the seed", seed, false);
  check("the draw", draw, false);
  check("the stream", stream, false);
  check("the element", element, true);
  const Var block = b.binary(Op::shr, element, like(element, 2));
  // mix64(0) is 0, so blocks below 2^32 leave the draw as it is without being told apart.
  const Var mixed = exclusive_or(draw, mix(shift_right(block, 32)));
  const Var first = low_half(block);
  const Counter c =
      philox({first, splat_like(first, low_half(stream)), low_half(mixed), high_half(mixed)},
             low_half(seed), high_half(seed));
  const auto bit_of_element = [&](std::int64_t bit) {
    const Var low = low_half(element);
    return ne(b.binary(Op::bit_and, low, like(low, bit)), like(low, 0));
  };
  const Var odd = bit_of_element(1), upper = bit_of_element(2);
  return b.select(upper, b.select(odd, c[3], c[2]), b.select(odd, c[1], c[0]));
}

}  // namespace pantala::schedule
