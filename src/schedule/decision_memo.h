// What was found out about code while groups were made. Layers that are alike, and graphs that
// differ in little, ask the same over and over: whatever depends on the form of code alone is
// answered once. For one machine and one set of options.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "schedule/archetype.h"
#include "schedule/code_form.h"

namespace pantala::schedule {

struct DecisionMemo {
  struct KnownReads {
    std::uint32_t number = 0;  // of the form, from 0 on
    Reads reads;               // values are numbers: that of a load, in the order of the form
  };
  std::unordered_map<FormWords, KnownReads, FormHash> reads;
  std::unordered_map<FormWords, bool, FormHash> must_store;  // operands
  std::unordered_map<FormWords, bool, FormHash> joins;       // pieces that can share a kernel
  std::uint32_t forms = 0;                                   // numbers that were given out
};

}  // namespace pantala::schedule
