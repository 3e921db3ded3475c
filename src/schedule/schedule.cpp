#include "schedule/schedule.h"

#include "schedule/building.h"
#include "schedule/fusion.h"
#include "schedule/preparation.h"
#include "schedule/storage.h"

namespace pantala::schedule {

Decisions decide(const Graph& lowered, const Machine& machine, const ScheduleOptions& options) {
  DecisionMemo memo;
  return decide(lowered, machine, options, memo);
}

Decisions decide(const Graph& lowered, const Machine& machine, const ScheduleOptions& options,
                 DecisionMemo& memo) {
  Context context(lowered, machine, options);
  const Pieces pieces = find_pieces(context, memo);
  context.plan_to_store(&pieces.stored);
  const Fused fused = fuse(context, pieces, memo);
  context.plan_to_store(nullptr);
  std::vector<Group> groups = assign_storage(context, pieces, fused.groups);
  Decisions decisions = context.take_decisions();
  decisions.groups = std::move(groups);
  decisions.prepares = options.prepares;
  decisions.searched = fused.searched;
  return decisions;
}

Program build(Decisions decisions, const Machine& machine, const ScheduleOptions& options) {
  const bool prepares = decisions.prepares;
  Program program = Building(std::move(decisions), machine, options).run();
  if (prepares) separate_preparation(program);
  return program;
}

Program schedule(const Graph& lowered, const Machine& machine, const ScheduleOptions& options) {
  return build(decide(lowered, machine, options), machine, options);
}

}  // namespace pantala::schedule
