// Dependency edges between launches, read off the memory that they touch: a launch must wait for an
// earlier one if they share bytes and one of the two writes them. Arena memory that is used twice
// gives edges like any other.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/plan.h"

namespace pantala::plan {

// Sets `after` of every launch to the fewest edges: none that follows from others.
void add_dependencies(Plan& plan);

// Throws InternalError naming two launches that touch the same bytes and may run at once.
void check_dependencies(const Plan& plan);

// Where an executor that walks the launches in order, all workers together, needs a barrier: `true`
// at k means before launch k. `serial` launches all run on one worker, so that a chain of them
// needs none.
std::vector<bool> barriers(std::span<const Launch> launches);

// Throws InternalError naming two launches that touch the same bytes with no barrier between them,
// where there are barriers before some launches and all others may run at once.
void check_barriers(const Plan& plan, const std::vector<bool>& before);

}  // namespace pantala::plan
