// The reduce archetypes in the graph: which ops share the passes over a row.
#pragma once

#include "schedule/common/reduce/traced.h"
#include "schedule/company.h"

namespace pantala::schedule {

// What a device's kernels ask of a company.
struct ReduceLimits {
  bool is_one_loop = false;  // lanes run along the reduced elements, which must be one loop then
};
bool can_join_reduction(const Company& company, const ReduceLimits& limits);

// The values of a group that was made.
ReduceGroup reduction_of(const Context& context, const Group& group);

// Several passes over a row may read an element of the full shape after it was overwritten.
bool reduces_in_one_pass(const Context& context, const Group& group, ValueId value);

}  // namespace pantala::schedule
