// IDX, the format of the MNIST family, plain or gzip-compressed (recognised by content, not by
// name): two zero bytes, an element type, a rank, the sizes and the elements, all big-endian.
#pragma once

#include <cstdint>
#include <filesystem>
#include <variant>
#include <vector>

#include "pantala/shape.h"

namespace pantala::io {

// Elements in their own width: a data set as a Literal would take eight times as much. Integers of
// 8 (signed) and 16 bits become 32 wide.
struct IdxArray {
  Shape shape;
  std::variant<std::vector<std::uint8_t>, std::vector<std::int32_t>, std::vector<float>,
               std::vector<double>>
      values;
  DType dtype() const;
};

inline constexpr std::uint64_t kMaxIdxBytes = std::uint64_t{8} << 30;

// IoError or ParseError. Elements of more than `max_bytes` are refused; memory grows with what is
// really there, not with what the header promises.
IdxArray read_idx(const std::filesystem::path& path, std::uint64_t max_bytes = kMaxIdxBytes);

}  // namespace pantala::io
