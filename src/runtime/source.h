// What a session takes out of a CompiledPlan.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "pantala/compile.h"
#include "runtime/store.h"

namespace pantala::runtime {

struct PlanSource {
  struct Role {
    std::string name;  // step, or accumulate and apply
    std::shared_ptr<const compiler::Compiled> compiled;
  };
  std::vector<Role> roles;
  std::vector<StoreLeaf> leaves;            // of all roles
  std::vector<std::string> group_patterns;  // of the parameter groups, in order
  std::int64_t accumulation_steps = 1;
  std::string device;
  int threads = 0;
  Report report;
};

PlanSource source_of(const CompiledPlan& plan);

}  // namespace pantala::runtime
