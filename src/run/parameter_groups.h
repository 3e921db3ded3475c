// What model.freeze and [[groups]] mean for a model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pantala/optim.h"
#include "pantala/session.h"
#include "run/core/config.h"

namespace pantala::run {

// In the order in which they count: what model.freeze names, then the groups.
std::vector<optim::ParameterGroup> parameter_groups(const RunConfig& config);

// TypeError, naming the key and the nearest name, for a pattern that fits none of the parameters,
// or only some that an earlier one has taken, and where nothing is left to train.
void check_groups(const RunConfig& config, const std::vector<std::string>& parameters);

// How many numbers are trained, and where.
struct ParameterCounts {
  struct Group {
    std::string key;  // that gave it: "groups.0.pattern"
    optim::ParameterGroup group;
    std::int64_t tensors = 0, numbers = 0;
  };
  std::int64_t all = 0, frozen = 0;
  std::vector<Group> groups;  // as parameter_groups()

  std::int64_t trained() const { return all - frozen; }
};
ParameterCounts count_parameters(const RunConfig& config, const Session& session);

}  // namespace pantala::run
