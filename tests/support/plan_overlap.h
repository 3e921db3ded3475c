// A second opinion on a plan's memory, which shares no code with the planner: the plan is walked as
// a list of reads and writes of bytes of the arena.
#pragma once

#include <string>

#include "plan/plan.h"

namespace pantala::tests {

// "" if every read of a temporary finds what was last written under that buffer's name, and no two
// launches that may run at once touch the same bytes, one of them writing; otherwise the first
// offence.
std::string memory_offence(const plan::Plan& plan);

}  // namespace pantala::tests
