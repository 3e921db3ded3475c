// What a kernel's `report` means: mostly the text of a ValueError.
#pragma once

#include <cstdint>
#include <string>

namespace pantala::kir {

// Not an error: a number is not finite that somebody watches.
inline constexpr std::int32_t kNotFinite = 0x7fffffff;
// A driver has ended a loop before its end (codegen/spirv): what the kernel made is wrong.
inline constexpr std::int32_t kLoopEnded = 0x7ffffffe;

struct StatusMessage {
  std::int64_t code = 0;
  std::string text;
};

}  // namespace pantala::kir
