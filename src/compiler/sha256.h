// SHA-256 (FIPS 180-4): keys and checksums of files, where an accident must not make two different
// things equal.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace pantala::compiler {

using Digest = std::array<std::uint8_t, 32>;

// Of bytes that come in parts.
class Sha256 {
 public:
  void add(std::string_view bytes);
  Digest finish();  // once

 private:
  std::array<std::uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<char, 64> rest_{};  // bytes that do not fill a block yet
  std::uint64_t size_ = 0;       // of all bytes
};

Digest sha256(std::string_view bytes);
std::string hex(const Digest& digest);

}  // namespace pantala::compiler
