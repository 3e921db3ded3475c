#include "pantala/dtype.h"

#include <bit>
#include <cmath>

namespace pantala {

namespace {
struct Row {
  DType dtype;
  std::string_view name;
  std::int64_t bytes;
};
constexpr Row kRows[] = {{DType::f32, "f32", 4}, {DType::f64, "f64", 8},
                         {DType::f16, "f16", 2}, {DType::bf16, "bf16", 2},
                         {DType::i32, "i32", 4}, {DType::i64, "i64", 8},
                         {DType::u8, "u8", 1},   {DType::boolean, "bool", 1}};

// Rounds to `bits` bits of mantissa with smallest normal exponent `min_exponent`, largest finite
// `largest`.
double round_float(double value, int bits, int min_exponent, double largest) {
  if (!std::isfinite(value) || value == 0) return value;
  int exponent = 0;
  std::frexp(value, &exponent);
  const int quantum = std::max(exponent - bits, min_exponent - bits + 1);
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(value, -quantum)), quantum);
  return std::fabs(rounded) > largest ? std::copysign(INFINITY, value) : rounded;
}
}  // namespace

std::string_view dtype_name(DType t) { return kRows[static_cast<std::size_t>(t)].name; }
std::int64_t dtype_bytes(DType t) { return kRows[static_cast<std::size_t>(t)].bytes; }

std::optional<DType> parse_dtype(std::string_view name) {
  for (const Row& row : kRows)
    if (row.name == name) return row.dtype;
  return std::nullopt;
}

double round_to(DType t, double value) {
  switch (t) {
    case DType::f32:
      return static_cast<double>(static_cast<float>(value));
    case DType::f16:
      return round_float(value, 11, -14, 65504.0);
    case DType::bf16:
      return round_float(value, 8, -126, 0x1.FEp127);
    default:
      return value;
  }
}

std::int64_t wrap_to(DType t, std::int64_t value) {
  switch (t) {
    case DType::i32:
      return static_cast<std::int32_t>(static_cast<std::uint32_t>(value));
    case DType::u8:
      return static_cast<std::uint8_t>(value);
    case DType::boolean:
      return value != 0;
    default:
      return value;
  }
}

bool can_hold(DType t, double value) {
  if (is_float(t)) return true;
  if (!(std::fabs(value) <= 0x1p53) || value != std::floor(value)) return false;
  const auto integer = static_cast<std::int64_t>(value);
  return wrap_to(t, integer) == integer;
}

}  // namespace pantala
