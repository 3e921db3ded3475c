// Writes safetensors files (the format: io/safetensors.h). The content is a function of the tensors
// alone: entries are ordered by the alignment of their type and then by name, so that every tensor
// begins at a multiple of its element's size.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "pantala/shape.h"

namespace pantala::io {

// A tensor as the memory of a device holds it: row-major, little-endian.
struct TensorBytes {
  std::string name;
  Type type;
  std::span<const std::byte> bytes;
};

// Replaces the file in one step (write_file). TypeError if a name occurs twice or a tensor has
// another number of bytes than its type.
void write_safetensors(const std::filesystem::path& path, std::vector<TensorBytes> tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace pantala::io
