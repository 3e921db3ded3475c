// IDX, the format of the MNIST family, plain or gzip-compressed (recognised by content, not by
// name): two zero bytes, an element type, a rank, the sizes and the elements, all big-endian.
#pragma once

#include <cstdint>
#include <filesystem>

#include "io/host_array.h"

namespace pantala::io {

inline constexpr std::uint64_t kMaxIdxBytes = std::uint64_t{8} << 30;

// IoError or ParseError. Integers of 8 (signed) and 16 bits become 32 wide. Elements of more than
// `max_bytes` are refused; memory grows with what is really there, not with what the header
// promises.
HostArray read_idx(const std::filesystem::path& path, std::uint64_t max_bytes = kMaxIdxBytes);

}  // namespace pantala::io
