// Division, square root and fma that are rounded once, to nearest even, for devices whose own are
// not: in integers, from the device's own result where that is a good guess. Subnormal numbers are
// numbers like others.
#include "codegen/spirv/rounding.h"

#include <spirv/unified1/GLSL.std.450.h>

namespace pantala::codegen::spirv {

namespace {

constexpr std::uint32_t kSign = 0x80000000U, kInfinity = 0x7F800000U, kNan = 0x7FC00000U;
constexpr int kTop = 62;  // the highest bit of a significand that is to be rounded

}  // namespace

Rounding::Rounding(Module& module)
    : m_(module),
      word_(m_.type_int(32)),
      long_(m_.type_int(64)),
      float_(m_.type_float()),
      bool_(m_.type_bool()) {}

Id Rounding::either(Id a, Id b) { return m_.emit(spv::Op::OpLogicalOr, bool_, {a, b}); }
Id Rounding::both(Id a, Id b) { return m_.emit(spv::Op::OpLogicalAnd, bool_, {a, b}); }
Id Rounding::compare(spv::Op op, Id a, Id b) { return m_.emit(op, bool_, {a, b}); }
Id Rounding::select(Id type, Id condition, Id a, Id b) {
  return m_.emit(spv::Op::OpSelect, type, {condition, a, b});
}
Id Rounding::bits(Id x) { return m_.emit(spv::Op::OpBitcast, word_, {x}); }
Id Rounding::real(Id integer) { return m_.emit(spv::Op::OpConvertSToF, float_, {integer}); }
Id Rounding::lengthened(Id x) { return m_.emit(spv::Op::OpUConvert, long_, {x}); }

Id Rounding::floats(spv::Op op, Id a, Id b) {
  const Id id = m_.emit(op, float_, {a, b});
  m_.decorate(id, spv::Decoration::NoContraction);
  return id;
}

Rounding::Parts Rounding::parts(Id x) {
  const Id all = bits(x);
  const Id magnitude = word(spv::Op::OpBitwiseAnd, all, u32(~kSign));
  const Id field = word(spv::Op::OpShiftRightLogical, magnitude, u32(23));
  const Id normal = compare(spv::Op::OpUGreaterThan, field, u32(0));
  const Id fraction = word(spv::Op::OpBitwiseAnd, magnitude, u32(0x7FFFFFU));
  const Id digits =
      select(word_, normal, word(spv::Op::OpBitwiseOr, fraction, u32(0x800000U)), fraction);
  // Subnormal numbers are shifted until the first digit stands where that of others does.
  const Id top = m_.extended(GLSLstd450FindUMsb, word_, {digits});
  const Id by = word(spv::Op::OpISub, u32(23), top);
  return {.sign = word(spv::Op::OpBitwiseAnd, all, u32(kSign)),
          .magnitude = magnitude,
          .digits = word(spv::Op::OpShiftLeftLogical, digits, by),
          .exponent = word(spv::Op::OpISub, select(word_, normal, field, u32(1)), by)};
}

// The highest bit that is set, of a number that is not zero.
Id Rounding::top_bit(Id x) {
  const Id high =
      m_.emit(spv::Op::OpUConvert, word_, {dword(spv::Op::OpShiftRightLogical, x, u64(32))});
  const Id low = m_.emit(spv::Op::OpUConvert, word_, {x});
  const Id of_high = word(spv::Op::OpIAdd, m_.extended(GLSLstd450FindUMsb, word_, {high}), u32(32));
  return select(word_, compare(spv::Op::OpINotEqual, high, u32(0)), of_high,
                m_.extended(GLSLstd450FindUMsb, word_, {low}));
}

// x * 2^exponent, x not zero, of which the last bit is set if anything was cut off behind it.
Id Rounding::rounded(Id sign, Id x, Id exponent) {
  const Id top = top_bit(x);
  const Id digits = dword(spv::Op::OpShiftLeftLogical, x, word(spv::Op::OpISub, u32(kTop), top));
  const Id field =
      word(spv::Op::OpIAdd, word(spv::Op::OpIAdd, exponent, top), u32(std::uint32_t{127}));
  // How far below the normal numbers it is: so many digits fewer are left.
  const Id under =
      m_.extended(GLSLstd450SMax, word_, {word(spv::Op::OpISub, u32(1), field), u32(0)});
  const Id is_normal = compare(spv::Op::OpIEqual, under, u32(0));
  const Id dropped = m_.extended(GLSLstd450SMin, word_,
                                 {word(spv::Op::OpIAdd, under, u32(kTop - 23)), u32(kTop + 1)});
  const Id kept = dword(spv::Op::OpShiftRightLogical, digits, dropped);
  const Id rest = dword(spv::Op::OpISub, digits, dword(spv::Op::OpShiftLeftLogical, kept, dropped));
  const Id half =
      dword(spv::Op::OpShiftLeftLogical, u64(1), word(spv::Op::OpISub, dropped, u32(1)));
  const Id odd = compare(spv::Op::OpINotEqual, dword(spv::Op::OpBitwiseAnd, kept, u64(1)), u64(0));
  const Id up = either(compare(spv::Op::OpUGreaterThan, rest, half),
                       both(odd, compare(spv::Op::OpIEqual, rest, half)));
  const Id number = word(spv::Op::OpIAdd, m_.emit(spv::Op::OpUConvert, word_, {kept}),
                         select(word_, up, u32(1), u32(0)));
  // The first digit counts one in the exponent, and so does a carry.
  const Id scaled =
      word(spv::Op::OpShiftLeftLogical, word(spv::Op::OpISub, field, u32(1)), u32(23));
  Id result = word(spv::Op::OpIAdd, number, select(word_, is_normal, scaled, u32(0)));
  result = select(word_, compare(spv::Op::OpSGreaterThan, under, u32(24)), u32(0), result);
  result =
      select(word_, compare(spv::Op::OpSGreaterThanEqual, field, u32(255)), u32(kInfinity), result);
  return word(spv::Op::OpBitwiseOr, sign, result);
}

Id Rounding::with_sticky(Id x, Id is_exact) {
  const Id shifted = dword(spv::Op::OpShiftLeftLogical, x, u32(1));
  return dword(spv::Op::OpBitwiseOr, shifted, select(long_, is_exact, u64(0), u64(1)));
}

// The device's quotient of the digits is a few units off; the remainder, which is exact, says by
// how many.
Id Rounding::divide(Id x, Id y) {
  const Parts a = parts(x), b = parts(y);
  const Id divisor = real(b.digits);
  const Id guess =
      m_.emit(spv::Op::OpConvertFToU, word_,
              {floats(spv::Op::OpFMul, floats(spv::Op::OpFDiv, real(a.digits), divisor),
                      m_.constant_float(0x1p25F))});
  const Id whole = dword(spv::Op::OpShiftLeftLogical, lengthened(a.digits), u32(25));
  const Id rest = m_.emit(spv::Op::OpUConvert, word_,
                          {dword(spv::Op::OpISub, whole,
                                 dword(spv::Op::OpIMul, lengthened(guess), lengthened(b.digits)))});
  const Id more = m_.emit(
      spv::Op::OpConvertFToS, word_,
      {m_.extended(GLSLstd450Floor, float_, {floats(spv::Op::OpFDiv, real(rest), divisor)})});
  const Id left = word(spv::Op::OpISub, rest, word(spv::Op::OpIMul, more, b.digits));
  const Id below = compare(spv::Op::OpSLessThan, left, u32(0)),
           above = compare(spv::Op::OpSGreaterThanEqual, left, b.digits);
  const Id off = select(word_, below, u32(~0U), select(word_, above, u32(1), u32(0)));
  const Id quotient = word(spv::Op::OpIAdd, word(spv::Op::OpIAdd, guess, more), off);
  const Id remainder = word(spv::Op::OpISub, left, word(spv::Op::OpIMul, off, b.digits));
  const Id exact = compare(spv::Op::OpIEqual, remainder, u32(0));
  const Id exponent =
      word(spv::Op::OpISub, word(spv::Op::OpISub, a.exponent, b.exponent), u32(26U));
  const Id sign = word(spv::Op::OpBitwiseXor, a.sign, b.sign);
  Id result = rounded(sign, with_sticky(lengthened(quotient), exact), exponent);

  const auto is = [&](const Parts& p, std::uint32_t what) {
    return compare(spv::Op::OpIEqual, p.magnitude, u32(what));
  };
  const auto is_nan = [&](const Parts& p) {
    return compare(spv::Op::OpUGreaterThan, p.magnitude, u32(kInfinity));
  };
  result = select(word_, either(is(a, 0), is(b, kInfinity)), sign, result);
  result = select(word_, either(is(a, kInfinity), is(b, 0)),
                  word(spv::Op::OpBitwiseOr, sign, u32(kInfinity)), result);
  const Id undefined =
      either(either(is_nan(a), is_nan(b)),
             either(both(is(a, 0), is(b, 0)), both(is(a, kInfinity), is(b, kInfinity))));
  return m_.emit(spv::Op::OpBitcast, float_, {select(word_, undefined, u32(kNan), result)});
}

Id Rounding::square_root(Id x) {
  const Parts a = parts(x);
  // x = digits * 2^(exponent - 150), or twice the digits if that would be odd.
  const Id odd = word(spv::Op::OpBitwiseAnd, a.exponent, u32(1U));
  const Id digits = word(spv::Op::OpShiftLeftLogical, a.digits, odd);
  const Id square = dword(spv::Op::OpShiftLeftLogical, lengthened(digits), u32(26));
  const Id guess =
      m_.emit(spv::Op::OpConvertFToU, word_,
              {floats(spv::Op::OpFMul, m_.extended(GLSLstd450Sqrt, float_, {real(digits)}),
                      m_.constant_float(0x1p13F))});
  const auto left_of = [&](Id root) {
    const Id r = lengthened(root);
    return dword(spv::Op::OpISub, square, dword(spv::Op::OpIMul, r, r));
  };
  const Id twice = real(word(spv::Op::OpShiftLeftLogical, guess, u32(1U)));
  const Id more = m_.emit(spv::Op::OpConvertFToS, word_,
                          {m_.extended(GLSLstd450Floor, float_,
                                       {floats(spv::Op::OpFDiv, real(left_of(guess)), twice)})});
  const Id near = word(spv::Op::OpIAdd, guess, more);
  const Id left = left_of(near);
  const Id below = compare(spv::Op::OpSLessThan, left, u64(0)),
           above = compare(spv::Op::OpSGreaterThan, left,
                           dword(spv::Op::OpShiftLeftLogical, lengthened(near), u32(1)));
  const Id root = word(spv::Op::OpIAdd, near,
                       select(word_, below, u32(~0U), select(word_, above, u32(1), u32(0))));
  const Id exact = compare(spv::Op::OpIEqual, left_of(root), u64(0));
  // Half of exponent - odd - 150 - 26, one less for the bit behind.
  const Id even = word(spv::Op::OpISub, word(spv::Op::OpISub, a.exponent, odd), u32(176U));
  const Id exponent =
      word(spv::Op::OpISub, word(spv::Op::OpShiftRightArithmetic, even, u32(1U)), u32(1U));
  Id result = rounded(u32(0), with_sticky(lengthened(root), exact), exponent);

  const Id is_zero = compare(spv::Op::OpIEqual, a.magnitude, u32(0));
  const Id negative = compare(spv::Op::OpINotEqual, a.sign, u32(0));
  result = select(word_, compare(spv::Op::OpIEqual, a.magnitude, u32(kInfinity)), u32(kInfinity),
                  result);
  const Id undefined =
      either(compare(spv::Op::OpUGreaterThan, a.magnitude, u32(kInfinity)), negative);
  result = select(word_, undefined, u32(kNan), result);
  return m_.emit(spv::Op::OpBitcast, float_, {select(word_, is_zero, bits(x), result)});
}

// To the right; the last bit is set if anything is lost.
Id Rounding::aligned(Id x, Id by) {
  const Id most = m_.extended(GLSLstd450SMin, word_, {by, u32(63)});
  const Id shifted = dword(spv::Op::OpShiftRightLogical, x, most);
  const Id exact = compare(spv::Op::OpIEqual, dword(spv::Op::OpShiftLeftLogical, shifted, most), x);
  return dword(spv::Op::OpBitwiseOr, shifted, select(long_, exact, u64(0), u64(1)));
}

// The product of the digits has 48 bits at most: both summands stand in 62 bits, the smaller one
// shifted to the exponent of the larger.
Id Rounding::multiply_add(Id x, Id y, Id z) {
  const Parts a = parts(x), b = parts(y), c = parts(z);
  const Id product =
      dword(spv::Op::OpShiftLeftLogical,
            dword(spv::Op::OpIMul, lengthened(a.digits), lengthened(b.digits)), u32(14));
  const Id summand = dword(spv::Op::OpShiftLeftLogical, lengthened(c.digits), u32(37));
  const Id of_product =
      word(spv::Op::OpISub, word(spv::Op::OpIAdd, a.exponent, b.exponent), u32(314U));
  const Id of_summand = word(spv::Op::OpISub, c.exponent, u32(187U));
  const Id exponent = m_.extended(GLSLstd450SMax, word_, {of_product, of_summand});
  const auto with_sign = [&](Id number, Id sign) {
    const Id negated = m_.emit(spv::Op::OpSNegate, long_, {number});
    return select(long_, compare(spv::Op::OpINotEqual, sign, u32(0)), negated, number);
  };
  const Id sign = word(spv::Op::OpBitwiseXor, a.sign, b.sign);
  const Id sum =
      dword(spv::Op::OpIAdd,
            with_sign(aligned(product, word(spv::Op::OpISub, exponent, of_product)), sign),
            with_sign(aligned(summand, word(spv::Op::OpISub, exponent, of_summand)), c.sign));
  const Id negative = compare(spv::Op::OpSLessThan, sum, u64(0));
  const Id size = select(long_, negative, m_.emit(spv::Op::OpSNegate, long_, {sum}), sum);
  Id result = rounded(select(word_, negative, u32(kSign), u32(0)), size, exponent);
  result = select(word_, compare(spv::Op::OpIEqual, sum, u64(0)), u32(0), result);

  // What is no number, and a product of zero, need no rounding.
  const auto is_plain = [&](const Parts& p) {
    return both(compare(spv::Op::OpULessThan, p.magnitude, u32(kInfinity)),
                compare(spv::Op::OpINotEqual, p.magnitude, u32(0)));
  };
  const Id special = floats(spv::Op::OpFAdd, floats(spv::Op::OpFMul, x, y), z);
  const Id is_finite = compare(spv::Op::OpULessThan, c.magnitude, u32(kInfinity));
  result = select(word_, is_finite, result, bits(z));
  return m_.emit(spv::Op::OpBitcast, float_,
                 {select(word_, both(is_plain(a), is_plain(b)), result, bits(special))});
}

Id Rounding::doubles(spv::Op op, Id a, Id b) {
  const Id id = m_.emit(op, m_.type_float(64), {a, b});
  m_.decorate(id, spv::Decoration::NoContraction);
  return id;
}

// The product is exact. A sum that is not becomes the one of its two neighbours whose last digit is
// odd, so that it is rounded to single precision as the exact sum is.
Id Rounding::multiply_add_in_double(Id x, Id y, Id z) {
  const auto widened = [&](Id v) { return m_.emit(spv::Op::OpFConvert, m_.type_float(64), {v}); };
  const Id product = doubles(spv::Op::OpFMul, widened(x), widened(y)), summand = widened(z);
  const Id sum = doubles(spv::Op::OpFAdd, product, summand);
  const Id of_summand = doubles(spv::Op::OpFSub, sum, product);
  const Id of_product = doubles(spv::Op::OpFSub, sum, of_summand);
  const Id rest = doubles(spv::Op::OpFAdd, doubles(spv::Op::OpFSub, product, of_product),
                          doubles(spv::Op::OpFSub, summand, of_summand));
  const Id zero = m_.constant_double(0);
  const Id digits = m_.emit(spv::Op::OpBitcast, long_, {sum});
  const Id even = compare(spv::Op::OpIEqual, dword(spv::Op::OpBitwiseAnd, digits, u64(1)), u64(0));
  // Away from zero if both have one sign.
  const Id grows = compare(spv::Op::OpLogicalEqual, compare(spv::Op::OpFOrdGreaterThan, rest, zero),
                           compare(spv::Op::OpFOrdGreaterThan, sum, zero));
  const Id odd = dword(spv::Op::OpIAdd, digits, select(long_, grows, u64(1), u64(~0ULL)));
  const Id moves = both(even, compare(spv::Op::OpFOrdNotEqual, rest, zero));
  return m_.emit(
      spv::Op::OpFConvert, float_,
      {m_.emit(spv::Op::OpBitcast, m_.type_float(64), {select(long_, moves, odd, digits)})});
}

}  // namespace pantala::codegen::spirv
