// The estimate: how long a schedule takes by a cost table, from the decisions alone. No kernel is
// built, no clock is read, and neither the machine's threads nor its caches are asked: equal
// decisions cost the same everywhere.
//
// A kernel takes what its arithmetic and its accesses take with everything near, or what the bytes
// take that lie further away, whichever is more, and a part of the other. Where bytes lie follows
// from what was touched since they were touched last: the groups are walked in their order, as one
// step after another.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "schedule/archetype.h"
#include "schedule/code_form.h"
#include "schedule/cost_table.h"
#include "schedule/decisions.h"
#include "schedule/work.h"

namespace pantala::schedule {

// Memory that the kernels of a group pass on to one another: each has a number within the group.
struct OwnUse {
  int number = 0;
  bool is_write = false;
  double bytes = 0;
  bool is_scattered = false;  // lines of the cache are written far from one another
};

// How much a kernel of a group does, before anything is said about memory.
struct Effort {
  double cycles = 0;  // of one core that runs all items, with all data near
  double items = 1;   // that workers can share
  bool serial = false;
  // Whether `cycles` are those of the slowest worker times the workers: items are no concern any
  // more.
  bool is_balanced = false;
  std::vector<OwnUse> own = {};
};

// What was found out about groups of the same form, and about problems of the same sizes, before:
// layers that are alike, and candidates that differ in little, ask for the same.
class EffortMemo {
 public:
  struct GroupWork {
    Work work;  // its buffers are numbers of the form's
    std::vector<Effort> efforts;
  };
  template <class Make>
  const GroupWork& of(FormWords form, const Make& make) {
    const auto [at, is_new] = groups_.try_emplace(std::move(form));
    if (is_new) at->second = make();
    return at->second;
  }
  template <class Make>
  const Effort& of(const Archetype& archetype, const std::vector<std::int64_t>& problem,
                   const Make& make) {
    const auto [at, is_new] = known_.try_emplace({&archetype, problem});
    if (is_new) at->second = make();
    return at->second;
  }

 private:
  std::unordered_map<FormWords, GroupWork, FormHash> groups_;
  std::map<std::pair<const Archetype*, std::vector<std::int64_t>>, Effort> known_;
};

// What an archetype needs to say how much its kernels do.
struct EffortSite {
  const Context& context;  // of the table's processor
  const Group& group;
  const Work& work;
  const CostTable& table;
  EffortMemo& memo;
};
// Of work that is done element by element: arithmetic and accesses as Work counts them.
double elementwise_cycles(const Work& work, const CostTable& table, int kernel = kEveryKernel);

struct KernelCost {
  double microseconds = 0;  // none if it belongs to the preparation (preparation.h)
  double compute = 0, memory = 0, overhead = 0;  // parts; the first two overlap
};

struct GroupCost {
  std::vector<KernelCost> kernels;
  double flops = 0, bytes = 0;
  double microseconds() const;
};

// From the group that first touches a buffer to the last.
struct Life {
  std::size_t first = SIZE_MAX, last = 0;
  bool spans(std::size_t group) const { return first <= group && group <= last; }
};

struct Estimate {
  std::vector<GroupCost> groups;  // in their order
  double microseconds = 0, flops = 0, bytes = 0;
  std::int64_t launches = 0;
  std::int64_t peak_bytes = 0;  // of temporaries that are alive together
  std::size_t peak_group = 0;   // when they are
  std::vector<Life> lives;      // by buffer
};

Estimate estimate(const Decisions& decisions, const ArchetypeTable& archetypes,
                  const CostTable& table);
// The same, with what was found out for other decisions by the same table.
Estimate estimate(const Decisions& decisions, const ArchetypeTable& archetypes,
                  const CostTable& table, EffortMemo& memo);

}  // namespace pantala::schedule
