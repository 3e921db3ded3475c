// What a kernel's `report` means to the user: the text of a ValueError.
#pragma once

#include <cstdint>
#include <string>

namespace pantala::kir {

struct StatusMessage {
  std::int64_t code = 0;
  std::string text;
};

}  // namespace pantala::kir
