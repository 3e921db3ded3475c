// SHA-256 (FIPS 180-4): keys and checksums of plan files, where an accident must not make two
// different things equal.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace pantala::compiler {

using Digest = std::array<std::uint8_t, 32>;

Digest sha256(std::string_view bytes);
std::string hex(const Digest& digest);

}  // namespace pantala::compiler
