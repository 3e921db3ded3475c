// What cost tables say of the launches of one plan. A graph that is not rewritten is scheduled for
// the processor at hand, whatever the table: several tables can be held against the same launches,
// and against the times that they were measured to take.
#pragma once

#include <span>
#include <vector>

#include "compiler/pipeline.h"
#include "schedule/cost_table.h"
#include "schedule/decisions.h"
#include "schedule/estimate.h"
#include "schedule/program.h"

namespace pantala::compiler {

// By launch. For another number of threads than the table's a group may be computed by other
// kernels: then each gets its share of the group's cost.
std::vector<schedule::KernelCost> launch_costs(const schedule::Estimate& estimate,
                                               std::span<const schedule::ProgramLaunch> launches);

class Predictions {
 public:
  // TypeError unless the options have Rewrite::none.
  explicit Predictions(const Compilation& given);

  // All launches of all steps, as Session::kernels() has them.
  std::vector<schedule::KernelCost> by(const schedule::CostTable& table) const;

 private:
  struct Step {
    schedule::Decisions decisions;
    std::vector<schedule::ProgramLaunch> launches;
  };
  const schedule::ArchetypeTable& archetypes_;
  std::vector<Step> steps_;
};

}  // namespace pantala::compiler
