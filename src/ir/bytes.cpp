#include "ir/bytes.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "pantala/error.h"

namespace pantala::ir {

namespace {

// Calls f with a zero of the type that memory holds.
template <class F>
void with_memory_type(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f32:
      return f(float{});
    case DType::f64:
      return f(double{});
    case DType::i32:
      return f(std::int32_t{});
    case DType::i64:
      return f(std::int64_t{});
    case DType::u8:
    case DType::boolean:
      return f(std::uint8_t{});
    case DType::f16:
    case DType::bf16:
      return f(std::uint16_t{});
  }
}

void check_size(const Type& type, std::size_t bytes) {
  const auto expected = static_cast<std::size_t>(type.shape.numel() * dtype_bytes(type.dtype));
  if (bytes != expected)
    throw InternalError(fmt::format("{} takes {} bytes, got {}", type.str(), expected, bytes));
}

}  // namespace

std::uint16_t half_bits(DType dtype, double value) {
  const int fraction = dtype == DType::f16 ? 10 : 7, bias = dtype == DType::f16 ? 15 : 127;
  const int specials = (1 << (15 - fraction)) - 1;  // the exponent of infinities and NaNs
  const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? 0x8000 : 0);
  const auto with = [&](int bits) { return static_cast<std::uint16_t>(sign | bits); };
  if (std::isnan(value)) return with((specials << fraction) | (1 << (fraction - 1)));
  const double magnitude = std::fabs(round_to(dtype, value));
  if (std::isinf(magnitude)) return with(specials << fraction);
  if (magnitude == 0) return sign;
  const int exponent = std::max(std::ilogb(magnitude), 1 - bias);
  const auto units = static_cast<int>(std::ldexp(magnitude, fraction - exponent));
  const bool normal = units >= (1 << fraction);
  return with(normal ? ((exponent + bias) << fraction) | (units - (1 << fraction)) : units);
}

double half_value(DType dtype, std::uint16_t bits) {
  const int fraction = dtype == DType::f16 ? 10 : 7, bias = dtype == DType::f16 ? 15 : 127;
  const int specials = (1 << (15 - fraction)) - 1;
  const int exponent = (bits >> fraction) & specials, units = bits & ((1 << fraction) - 1);
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == specials) return units == 0 ? sign * INFINITY : NAN;
  if (exponent == 0) return sign * std::ldexp(units, 1 - bias - fraction);
  return sign * std::ldexp(units + (1 << fraction), exponent - bias - fraction);
}

void to_bytes(const Literal& literal, std::span<std::byte> bytes) {
  check_size(literal.type(), bytes.size());
  with_memory_type(literal.dtype(), [&](auto zero) {
    using Stored = decltype(zero);
    for (std::size_t k = 0; k < static_cast<std::size_t>(literal.numel()); ++k) {
      Stored stored{};
      if constexpr (std::is_same_v<Stored, std::uint16_t>)
        stored = half_bits(literal.dtype(), literal.f()[k]);
      else if constexpr (std::is_floating_point_v<Stored>)
        stored = static_cast<Stored>(literal.f()[k]);
      else
        stored = static_cast<Stored>(literal.i()[k]);
      std::memcpy(bytes.data() + k * sizeof stored, &stored, sizeof stored);
    }
  });
}

Literal from_bytes(const Type& type, std::span<const std::byte> bytes) {
  check_size(type, bytes.size());
  Literal literal(type);
  with_memory_type(type.dtype, [&](auto zero) {
    using Stored = decltype(zero);
    for (std::size_t k = 0; k < static_cast<std::size_t>(literal.numel()); ++k) {
      Stored stored{};
      std::memcpy(&stored, bytes.data() + k * sizeof stored, sizeof stored);
      if constexpr (std::is_same_v<Stored, std::uint16_t>)
        literal.f()[k] = half_value(type.dtype, stored);
      else if constexpr (std::is_floating_point_v<Stored>)
        literal.f()[k] = static_cast<double>(stored);
      else
        literal.i()[k] = type.dtype == DType::boolean ? stored != 0 : stored;
    }
  });
  return literal;
}

}  // namespace pantala::ir
