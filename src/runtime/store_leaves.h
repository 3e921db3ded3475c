// What a session takes out of a CompiledPlan: the leaves that its store keeps, and the steps.
#pragma once

#include <memory>
#include <vector>

#include "plan/compiled_plan.h"
#include "runtime/store.h"

namespace pantala::runtime {

using PlanData = std::shared_ptr<const CompiledPlan::Data>;

// The leaves of a plan that live from step to step.
std::vector<StoreLeaf> store_leaves(const CompiledPlan::Data& data);

// A step that shares the life of its plan.
inline std::shared_ptr<const plan::CompiledStep> step_of(const PlanData& data, std::size_t index) {
  return {data, &data->steps[index]};
}

}  // namespace pantala::runtime
