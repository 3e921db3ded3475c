// Counts what operator new gives out in this process, for tests that say "nothing is allocated
// here" or "nothing large". Counting begins with the first call of a function below, so that tests
// which do not ask are not slowed down: only differences say something of `count`, `live` and
// `peak`.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pantala::tests {

struct Allocations {
  std::int64_t count = 0;   // since counting began
  std::size_t largest = 0;  // since the last reset_largest_allocation()
  // Bytes given out since counting began, less all that were given back since: below zero when
  // older memory came back.
  std::int64_t live = 0;
  std::int64_t peak = 0;  // the highest `live` since the last reset_peak_allocation()
};
Allocations allocations();
void reset_largest_allocation();
void reset_peak_allocation();

}  // namespace pantala::tests
