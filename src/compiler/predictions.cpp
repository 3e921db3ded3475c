#include "compiler/predictions.h"

#include <algorithm>

#include "pantala/error.h"
#include "schedule/schedule.h"

namespace pantala::compiler {

using schedule::KernelCost;

std::vector<KernelCost> launch_costs(const schedule::Estimate& estimate,
                                     std::span<const schedule::ProgramLaunch> launches) {
  std::vector<std::uint32_t> kernels(estimate.groups.size(), 0);
  for (const schedule::ProgramLaunch& launch : launches)
    kernels.at(launch.group) = std::max(kernels[launch.group], launch.part + 1);
  const auto share_of = [&](const schedule::GroupCost& group, double KernelCost::* part,
                            std::uint32_t count) {
    double sum = 0;
    for (const KernelCost& kernel : group.kernels) sum += kernel.*part;
    return sum / count;
  };
  std::vector<KernelCost> costs;
  for (const schedule::ProgramLaunch& launch : launches) {
    const schedule::GroupCost& group = estimate.groups[launch.group];
    const std::uint32_t count = kernels[launch.group];
    if (count <= group.kernels.size()) {
      costs.push_back(group.kernels[launch.part]);
      continue;
    }
    KernelCost& share = costs.emplace_back();
    for (const auto part : {&KernelCost::microseconds, &KernelCost::compute, &KernelCost::memory,
                            &KernelCost::overhead})
      share.*part = share_of(group, part, count);
  }
  return costs;
}

Predictions::Predictions(const Compilation& given)
    : archetypes_(
          backend_of(given.options.device).archetypes(host_options(given.options).code_for())) {
  if (given.options.rewrite != Rewrite::none)
    throw TypeError("predictions are of a graph as it is given: rewrite must be none");
  Report report;
  const Options options = host_options(given.options);
  const ScheduleSetting setting = schedule_setting(options);
  for (const StepGraph& step : make_step_graphs(given, report)) {
    schedule::Decisions decisions =
        schedule::decide(choose_graph(step, options, report), setting.machine, setting.how);
    std::vector<schedule::ProgramLaunch> launches =
        schedule::build(schedule::Decisions(decisions), setting.machine, setting.how).launches;
    steps_.push_back({std::move(decisions), std::move(launches)});
  }
}

std::vector<KernelCost> Predictions::by(const schedule::CostTable& table) const {
  std::vector<KernelCost> all;
  for (const Step& step : steps_) {
    const std::vector<KernelCost> costs =
        launch_costs(schedule::estimate(step.decisions, archetypes_, table), step.launches);
    all.insert(all.end(), costs.begin(), costs.end());
  }
  return all;
}

}  // namespace pantala::compiler
