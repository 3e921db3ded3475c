#include "run/parameter_groups.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "pantala/error.h"
#include "run/core/patterns.h"

namespace pantala::run {

namespace {

// Who gave the group of this number.
std::string key_of(const RunConfig& config, std::size_t group) {
  const std::size_t frozen = comma_parts(config.model.freeze).size();
  return group < frozen ? "model.freeze" : fmt::format("groups.{}.pattern", group - frozen);
}

// Which group each parameter belongs to, by number; as many as there are groups: to none.
std::vector<std::size_t> places(const std::vector<optim::ParameterGroup>& groups,
                                const std::vector<std::string>& parameters) {
  std::vector<std::size_t> list;
  for (const std::string& name : parameters) {
    const optim::ParameterGroup* group = optim::find_group(groups, name);
    list.push_back(group ? static_cast<std::size_t>(group - groups.data()) : groups.size());
  }
  return list;
}

}  // namespace

std::vector<optim::ParameterGroup> parameter_groups(const RunConfig& config) {
  std::vector<optim::ParameterGroup> groups;
  for (const std::string& pattern : comma_parts(config.model.freeze))
    groups.push_back({.pattern = pattern, .frozen = true});
  groups.insert(groups.end(), config.groups.begin(), config.groups.end());
  return groups;
}

void check_groups(const RunConfig& config, const std::vector<std::string>& parameters) {
  const std::vector<optim::ParameterGroup> groups = parameter_groups(config);
  const std::vector<std::size_t> taken = places(groups, parameters);
  for (std::size_t k = 0; k < groups.size(); ++k) {
    if (std::find(taken.begin(), taken.end(), k) != taken.end()) continue;
    const std::string& pattern = groups[k].pattern;
    const auto fits = [&](const std::string& name) { return glob_match(pattern, name); };
    const auto first = std::find_if(parameters.begin(), parameters.end(), fits);
    if (first == parameters.end())
      throw TypeError(fmt::format("{}: no parameter of the model is called '{}'{}",
                                  key_of(config, k), pattern, pattern_hint(pattern, parameters)));
    const std::size_t earlier = taken[static_cast<std::size_t>(first - parameters.begin())];
    throw TypeError(fmt::format(
        "{}: all that '{}' fits belongs to others before it ('{}' to '{}' of {})",
        key_of(config, k), pattern, *first, groups[earlier].pattern, key_of(config, earlier)));
  }
  const bool all_frozen = std::all_of(taken.begin(), taken.end(), [&](std::size_t group) {
    return group < groups.size() && groups[group].frozen;
  });
  if (all_frozen && !groups.empty())
    throw TypeError(fmt::format("nothing is left to train: all {} parameters are frozen ({})",
                                parameters.size(), key_of(config, taken.empty() ? 0 : taken[0])));
}

ParameterCounts count_parameters(const RunConfig& config, const Session& session) {
  const std::vector<optim::ParameterGroup> groups = parameter_groups(config);
  const std::vector<std::string> parameters = session.parameters();
  const std::vector<std::size_t> taken = places(groups, parameters);
  ParameterCounts counts;
  for (std::size_t k = 0; k < groups.size(); ++k)
    counts.groups.push_back({.key = key_of(config, k), .group = groups[k]});
  for (std::size_t k = 0; k < parameters.size(); ++k) {
    const std::int64_t numbers = session.parameter(parameters[k]).shape().numel();
    counts.all += numbers;
    if (taken[k] == groups.size()) continue;
    counts.groups[taken[k]].tensors += 1;
    counts.groups[taken[k]].numbers += numbers;
    if (groups[taken[k]].frozen) counts.frozen += numbers;
  }
  return counts;
}

}  // namespace pantala::run
