// Literals as bytes of memory and back: how devices and files hold numbers of each dtype
// (little-endian).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "pantala/literal.h"

namespace pantala::ir {

// The 16 bits of a number of f16 or bf16, rounded to nearest even; and the number of such bits.
std::uint16_t half_bits(DType dtype, double value);
double half_value(DType dtype, std::uint16_t bits);

// `bytes` must have exactly the literal's size (InternalError).
void to_bytes(const Literal& literal, std::span<std::byte> bytes);
Literal from_bytes(const Type& type, std::span<const std::byte> bytes);

}  // namespace pantala::ir
