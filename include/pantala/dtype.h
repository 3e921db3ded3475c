// Element types. f32 is the type of computation, f64 of reference and hyper-parameters; f16 and
// bf16 are storage types.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pantala {

enum class DType : std::uint8_t { f32, f64, f16, bf16, i32, i64, u8, boolean };

inline constexpr DType f32 = DType::f32;
inline constexpr DType f64 = DType::f64;
inline constexpr DType f16 = DType::f16;
inline constexpr DType bf16 = DType::bf16;
inline constexpr DType i32 = DType::i32;
inline constexpr DType i64 = DType::i64;
inline constexpr DType u8 = DType::u8;
inline constexpr DType boolean = DType::boolean;

constexpr bool is_float(DType t) { return t <= DType::bf16; }
constexpr bool is_integer(DType t) { return t == DType::i32 || t == DType::i64 || t == DType::u8; }

// The name in text and messages: f32, ..., bool.
std::string_view dtype_name(DType t);
std::optional<DType> parse_dtype(std::string_view name);
std::int64_t dtype_bytes(DType t);

// Rounds to the nearest number that `t` can hold: f32, f16, bf16 by round-to-nearest-even.
double round_to(DType t, double value);
// Wraps an integer to the range of an integer type; bool becomes 0 or 1.
std::int64_t wrap_to(DType t, std::int64_t value);
// Whether a constant may have this value: integers must lie in the range of `t`, and within 2^53,
// where doubles are exact.
bool can_hold(DType t, double value);

}  // namespace pantala
