// What a schedule is made for: a device as the scheduler sees it, and the caller's wishes.
#pragma once

#include <functional>

#include "schedule/target.h"

namespace pantala::schedule {

class ArchetypeTable;

struct Machine {
  const ArchetypeTable& archetypes;
  Target target;
};

struct ScheduleOptions {
  bool fuse = true;  // false: a kernel per op, the same bits
  int workers = 1;   // that will share the launches; changes the split of work, never a result
  // What follows from parameters alone is kept from run to run (preparation.h), which takes memory.
  bool prepares = false;
  std::function<void()> check = {};  // called between parts of the work, which ends if it throws
};

}  // namespace pantala::schedule
