// Integers of the safetensors format that Pantala does not have (I8, I16, U16, U32, U64), as the
// next wider type that it has. Their values stay what they are.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "io/safetensors.h"

namespace pantala::io {

// The elements of an entry whose `widened` is set, as that type; `bytes` are the entry's own. A U64
// that i64 does not hold is an UnsupportedError that begins with `file` and names the tensor.
std::vector<std::byte> widen(const SafeTensorsEntry& entry, std::span<const std::byte> bytes,
                             const std::string& file);

}  // namespace pantala::io
