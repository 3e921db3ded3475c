// Target: what a schedule must know about a processor. Plain numbers, so that a schedule can be
// made for a machine that is not this one; whoever knows the code generator and the machine fills
// them in.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "pantala/dtype.h"

namespace pantala::schedule {

struct Target {
  int vector_bytes = 16;  // the widest vector register
  int vector_registers = 16;
  std::int64_t l1_bytes = 32 << 10;  // data cache of a core
  std::int64_t l2_bytes = 512 << 10;
  std::int64_t l3_bytes = 8 << 20;  // shared by the cores
  int l1_ways = 8;

  // A device with workgroups: an item is worked on by up to so many threads (a power of two), which
  // share scratch of so many bytes; subgroups of them run in step. None: an item is one worker's.
  int group_threads = 0, subgroup_threads = 0;
  std::int64_t group_bytes = 0;

  bool has_groups() const { return group_threads > 0; }
  // Its subgroups are the lanes of a CPU, which has few processors to share workgroups out to.
  bool is_software() const { return has_groups() && subgroup_threads < 16; }
  int lanes(DType dtype) const {
    return std::max(1, vector_bytes / static_cast<int>(dtype_bytes(dtype)));
  }
  friend bool operator==(const Target&, const Target&) = default;
};

// All of the numbers: a part of the plan's key, since any of them may change the kernels.
std::string target_text(const Target& target);

}  // namespace pantala::schedule
