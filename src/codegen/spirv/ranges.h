// Which numbers the integers of a kernel can be, given what is known of its arguments. Kernel-IR
// indices have 64 bits, which GPUs compute slowly; what provably fits into 32 is computed there.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/spirv/spirv.h"

namespace pantala::codegen::spirv {

struct Range {
  std::int64_t low = INT64_MIN, high = INT64_MAX;
  bool fits32() const { return low >= INT32_MIN && high <= INT32_MAX; }
  friend bool operator==(const Range&, const Range&) = default;
};

// By value; of all lanes together. Of floats and bools it means nothing.
std::vector<Range> find_ranges(const kir::Kernel& kernel, const Facts& facts);
// Of all loops of an item together, at most.
double most_rounds(const kir::Kernel& kernel, const std::vector<Range>& ranges);

}  // namespace pantala::codegen::spirv
