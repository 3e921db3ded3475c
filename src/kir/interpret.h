// The interpreter of kernels: runs them on host memory, slowly and suspiciously. It separates a
// wrong kernel from a wrong backend: what runs here without an error and gives the right numbers is
// a right kernel.
//
// Checked at every access: bounds; reads of scratch that the item has not written; data races (an
// element of a global buffer that two items write, or that one writes and another reads, in
// whatever order the items run; of any buffer the same between two threads of an item, if no
// barrier stands between them). Buffers that overlap in memory are seen as such. Any violation is
// an InternalError that names kernel, item, buffer, index and instruction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ir/number.h"
#include "kir/kernel.h"

namespace pantala::kir {

struct BoundBuffer {
  DType dtype = DType::f32;
  std::byte* data = nullptr;
  std::int64_t elements = 0;
};

struct Arguments {
  std::vector<BoundBuffer> buffers;  // the global ones, in order
  std::vector<ir::Number> params;    // integral for integer and bool parameters
};

// Runs the items begin, begin + 1, ..., end - 1. Returns the status word: 0, or the code of the
// last report whose condition held.
std::int64_t interpret(const Kernel& kernel, const Arguments& arguments, std::int64_t begin,
                       std::int64_t end);

}  // namespace pantala::kir
