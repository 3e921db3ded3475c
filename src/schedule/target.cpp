#include "schedule/target.h"

#include <fmt/format.h>

namespace pantala::schedule {

std::string target_text(const Target& target) {
  return fmt::format("vectors {} x {}, caches {} ({} ways) {} {}", target.vector_registers,
                     target.vector_bytes, target.l1_bytes, target.l1_ways, target.l2_bytes,
                     target.l3_bytes);
}

}  // namespace pantala::schedule
