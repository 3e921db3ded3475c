// NPY, NumPy's format of one array: a magic string, a header that is a Python dictionary with the
// element type, the order and the shape, and the elements. Versions 1 to 3, both byte orders, C and
// Fortran order (which becomes C order here). Pickled objects are never loaded.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "io/byte_source.h"
#include "io/host_array.h"

namespace pantala::io {

inline constexpr std::uint64_t kMaxNpyBytes = std::uint64_t{8} << 30;

// f4, f8, i4, i8 and u1 as they are; f2 as f32, i1, i2 and u2 as i32, u4 and u8 as i64 (a u8 from
// 2^63 on is an UnsupportedError), b1 as u8 (0 or 1); UnsupportedError for others. ParseError for a
// damaged file, beginning with `what`. Elements of more than `max_bytes` are refused; memory grows
// with what is really there.
HostArray read_npy(ByteSource& source, const std::string& what,
                   std::uint64_t max_bytes = kMaxNpyBytes);
HostArray read_npy(const std::filesystem::path& path, std::uint64_t max_bytes = kMaxNpyBytes);

// `elements` has the array's elements in row-major order, in the byte order of this machine.
void write_npy(const std::filesystem::path& path, const Type& type,
               std::span<const std::byte> elements);

}  // namespace pantala::io
