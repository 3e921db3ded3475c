#include "schedule/target.h"

#include <fmt/format.h>

namespace pantala::schedule {

std::string target_text(const Target& target) {
  std::string text = fmt::format("vectors {} x {}, caches {} ({} ways) {} {}",
                                 target.vector_registers, target.vector_bytes, target.l1_bytes,
                                 target.l1_ways, target.l2_bytes, target.l3_bytes);
  if (target.has_groups())
    text += fmt::format(", groups of {} in {} with {}", target.group_threads,
                        target.subgroup_threads, target.group_bytes);
  return text;
}

}  // namespace pantala::schedule
