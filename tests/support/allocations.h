// Counts what operator new gives out in this process, for tests that say "nothing is allocated
// here" or "nothing large".
#pragma once

#include <cstddef>
#include <cstdint>

namespace pantala::tests {

struct Allocations {
  std::int64_t count = 0;
  std::size_t largest = 0;  // since the last reset_largest_allocation()
  std::size_t live = 0;     // bytes that have not been given back
  std::size_t peak = 0;     // the most bytes at once since the last reset_peak_allocation()
};
Allocations allocations();
void reset_largest_allocation();
void reset_peak_allocation();

}  // namespace pantala::tests
