// What a CompiledPlan holds: all that a session needs to make a store and run the steps, and all
// that a plan file keeps (plan/plan_file.h).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/sha256.h"
#include "pantala/compiled_plan.h"
#include "pantala/optim.h"
#include "plan/compiled_step.h"

namespace pantala {

struct CompiledPlan::Data {
  Digest key = {};  // what it was made from: compiler/plan_key.h
  std::string device = "cpu";
  int threads = 1;  // that the steps were scheduled for
  NonFiniteGuard non_finite = NonFiniteGuard::none;
  std::int64_t accumulation_steps = 1;
  bool normalize = true;  // what is accumulated becomes a mean
  // The outputs are some of the graph's: an input that they do not need is none of the plan's.
  bool chosen_outputs = false;
  std::optional<optim::Optimizer> optimizer;
  std::vector<std::string> group_patterns = {};  // of the parameter groups, in their order
  bool has_loss = false;
  std::string cost_table = {};  // by which it was chosen, in text form (schedule/cost_table.h)
  // By role: `step`, or `accumulate` and `apply`.
  std::vector<plan::CompiledStep> steps;
  // Those of all steps by name, in order of first occurrence. On the host only if every step has it
  // there, updated if one updates it.
  std::vector<plan::CompiledLeaf> leaves;

  // TypeError if there is no step of this role.
  const plan::CompiledStep& step(std::string_view role) const;
};

}  // namespace pantala

namespace pantala::plan {

// Fills in what follows from the steps.
void gather_leaves(CompiledPlan::Data& data);
// The name of a cost table and the beginning of its digest, for messages: "avx512
// 0123456789abcdef".
std::string cost_table_title(std::string_view text);
// One report for all steps: counts and times are added, the peak is the largest.
Report combined_report(const std::vector<CompiledStep>& steps);

}  // namespace pantala::plan
