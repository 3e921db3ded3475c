// The header of an NPY file: its text, a Python dictionary, read and written.
#pragma once

#include <bit>
#include <string>
#include <string_view>

#include "pantala/shape.h"

namespace pantala::io {

inline constexpr std::string_view kNpyMagic = "\x93NUMPY";

struct NpyHeader {
  std::string element;  // kind and size: "f4"
  std::endian order = std::endian::little;
  bool fortran = false;
  Shape shape;
};

// ParseError, or UnsupportedError for elements that have fields. `what` begins the message.
NpyHeader parse_npy_header(std::string_view text, const std::string& what);
// With the magic string before it and padding behind it: all bytes before the elements.
std::string write_npy_header(const NpyHeader& header);

}  // namespace pantala::io
