#include "schedule/schedule.h"

#include "schedule/building.h"
#include "schedule/groups.h"

namespace pantala::schedule {

Decisions decide(const Graph& lowered, const Machine& machine, const ScheduleOptions& options) {
  Context context(lowered, machine, options);
  std::vector<Group> groups = make_groups(context);
  Decisions decisions = context.take_decisions();
  decisions.groups = std::move(groups);
  return decisions;
}

Program build(Decisions decisions, const Machine& machine, const ScheduleOptions& options) {
  return Building(std::move(decisions), machine, options).run();
}

Program schedule(const Graph& lowered, const Machine& machine, const ScheduleOptions& options) {
  return build(decide(lowered, machine, options), machine, options);
}

}  // namespace pantala::schedule
