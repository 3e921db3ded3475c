#include "base/normal_numbers.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/philox.h"
#include "base/wide.h"

namespace pantala {

double normal_of(std::uint32_t radius_bits, std::uint32_t angle_bits) {
  const double radius = bits_to_unit(radius_bits), angle = bits_to_unit(angle_bits);
  return std::sqrt(-2 * std::log(radius + 0x1p-25)) * std::cos(2 * std::numbers::pi * angle);
}

namespace {

// The logarithm of a normal number below 1, and the sine and cosine of |r| <= pi/4, by the
// polynomials of fdlibm: within an ulp or two of double.
PANTALA_INLINED inline double near_log(double x) {
  const auto bits = __builtin_bit_cast(std::uint64_t, x);
  // x = 2^k m with sqrt(1/2) <= m < sqrt(2).
  const std::uint64_t exponent = (bits - 0x3FE6A09E667F3BCD + (1023ULL << 52)) >> 52;
  const double k = __builtin_bit_cast(double, exponent | 0x4330000000000000) - (0x1p52 + 1023),
               m = __builtin_bit_cast(double, bits - ((exponent - 1023) << 52));
  const double f = m - 1, s = f / (2 + f), z = s * s, half = 0.5 * f * f;
  const double r =
      z * (6.666666666666735130e-01 +
           z * (3.999999999940941908e-01 +
                z * (2.857142874366239149e-01 +
                     z * (2.222219843214978396e-01 +
                          z * (1.818357216161805012e-01 +
                               z * (1.531383769920937332e-01 + z * 1.479819860511658591e-01))))));
  return k * 6.93147180369123816490e-01 -
         ((half - (s * (half + r) + k * 1.90821492927058770002e-10)) - f);
}

PANTALA_INLINED inline double near_sine(double r, double w) {
  return r +
         r * w *
             (-1.66666666666666324348e-01 +
              w * (8.33333333332248946124e-03 +
                   w * (-1.98412698298579493134e-04 +
                        w * (2.75573137070700676789e-06 +
                             w * (-2.50507602534068634195e-08 + w * 1.58969099521155010221e-10)))));
}
PANTALA_INLINED inline double near_cosine(double w) {
  return 1 - (0.5 * w - w * w *
                            (4.16666666666666019037e-02 +
                             w * (-1.38888888888741095749e-03 +
                                  w * (2.48015872894767294178e-05 +
                                       w * (-2.75573143513906633035e-07 +
                                            w * (2.08757232129817482790e-09 +
                                                 w * -1.13596475577881948265e-11))))));
}

// The cosine of fl(2 pi angle). Where the angle is a quarter, what is left of pi/2 decides, and
// that is not known here well enough: such a result is below kLeastCosine.
PANTALA_INLINED inline double near_cosine_of_turn(double angle) {
  const double x = 2 * std::numbers::pi * angle, quarters = (angle * 4 + 0x1.8p52) - 0x1.8p52;
  // pi/2 in two parts, of which products with 1 to 4 are exact.
  const double r = (x - quarters * 1.57079632673412561417e+00) -
                   quarters * 6.07710050650619224932e-11,
               w = r * r;
  const bool is_sine = quarters == 1 || quarters == 3, is_negative = quarters == 1 || quarters == 2;
  const double value = is_sine ? near_sine(r, w) : near_cosine(w);
  return is_negative ? -value : value;
}
constexpr double kLeastCosine = 0x1p-30;

// Of either way to compute a number, some 2^7 times what it is.
constexpr double kError = 0x1p-46;

constexpr std::size_t kPart = 256;

// Whether all numbers are sure. (Roots and comparisons would keep the loop from becoming vectors if
// errno and traps counted: cmake/modules.cmake says that they do not.)
PANTALA_INLINED inline bool fill_part(const std::uint32_t* radius_bits,
                                      const std::uint32_t* angle_bits, double mean, double scale,
                                      double* out, std::size_t count) {
  unsigned doubts = 0;
  for (std::size_t k = 0; k < count; ++k) {
    // 24 bits are an int as well, which every processor converts in vectors.
    const double radius = static_cast<int>(radius_bits[k] >> 8) * 0x1p-24,
                 angle = static_cast<int>(angle_bits[k] >> 8) * 0x1p-24;
    const double cosine = near_cosine_of_turn(angle);
    const double moved = scale * (__builtin_sqrt(-2 * near_log(radius + 0x1p-25)) * cosine),
                 value = mean + moved;
    const double error = (__builtin_fabs(moved) + __builtin_fabs(value)) * kError;
    doubts |= static_cast<unsigned>(static_cast<float>(value - error) !=
                                    static_cast<float>(value + error)) |
              static_cast<unsigned>(__builtin_fabs(cosine) < kLeastCosine);
    out[k] = static_cast<double>(static_cast<float>(value));
  }
  return doubts == 0;
}

}  // namespace

void fill_normal(std::span<const std::uint32_t> radius_bits,
                 std::span<const std::uint32_t> angle_bits, double mean, double scale,
                 std::span<double> out) {
  for (std::size_t first = 0; first < out.size(); first += kPart) {
    const std::size_t count = std::min(kPart, out.size() - first);
    const std::uint32_t *radius = &radius_bits[first], *angle = &angle_bits[first];
    double* const to = &out[first];
    const bool is_sure = run_wide(
        [=]() PANTALA_INLINED { return fill_part(radius, angle, mean, scale, to, count); });
    if (is_sure) continue;
    for (std::size_t k = 0; k < count; ++k)
      to[k] =
          static_cast<double>(static_cast<float>(mean + scale * normal_of(radius[k], angle[k])));
  }
}

}  // namespace pantala
