#include "schedule/estimate.h"

#include <algorithm>
#include <cmath>

#include "pantala/error.h"
#include "schedule/code_form.h"

namespace pantala::schedule {

namespace {

// The part of the shorter of two things that overlap which is not hidden behind the longer.
constexpr double kExposed = 0.2;
// Of a cache, what a step's data can count on.
constexpr double kUsable = 0.75;

// How much longer a line from beyond the second cache takes that could not be fetched ahead.
constexpr double kJumping = 5;
// Cycles of a core for a byte of lines that are written far from one another, beyond its caches.
constexpr double kScatteredByte = 0.25;

// Where bytes come from, by what was touched in between.
class Caches {
 public:
  Caches(std::size_t buffers, const CostTable& table) : table_(table), last_(buffers, -kFar) {}

  // Cycles of one core for all bytes of a use, and of all cores together.
  struct Cost {
    double each = 0, shared = 0;
  };
  Cost touch(const MemoryUse& use) {
    const double distance = touched_ - last_[use.buffer] + use.bytes;
    touched_ += use.bytes;
    last_[use.buffer] = touched_;
    const double l1 = static_cast<double>(table_.target.l1_bytes) * table_.workers,
                 l2 = static_cast<double>(table_.target.l2_bytes) * table_.workers,
                 l3 = static_cast<double>(table_.target.l3_bytes);
    if (distance < kUsable * l1) return {};
    if (distance < kUsable * l2) return {use.bytes * table_.l2_byte, 0};
    const double waits = use.jumps ? kJumping : 1;
    if (distance < kUsable * l3) return {use.bytes * table_.l3_byte * waits, 0};
    // What is written is fetched first.
    const double bytes = use.bytes * (use.is_write ? 2 : 1);
    return {bytes * table_.memory_byte * waits, bytes * table_.shared_memory_byte};
  }
  Cost touch(const OwnUse& use, std::uint32_t buffer) {
    Cost cost = touch({.buffer = buffer, .is_write = use.is_write, .bytes = use.bytes});
    const double l2 = static_cast<double>(table_.target.l2_bytes) * table_.workers;
    if (use.is_scattered && use.bytes > kUsable * l2)
      cost.each = std::max(cost.each, use.bytes * kScatteredByte);
    return cost;
  }

 private:
  static constexpr double kFar = 1e18;
  const CostTable& table_;
  std::vector<double> last_;  // by buffer: how much had been touched
  double touched_ = 0;
};

Effort plain_effort(const EffortSite& at) {
  const double cycles = elementwise_cycles(at.work, at.table);
  return {.cycles = cycles, .items = 1 + cycles / 4096, .serial = at.work.flops < 16384};
}

std::vector<Effort> efforts_of(const EffortSite& at) {
  const MakingScope making(at.context,
                           at.group.is_copy ? std::vector<GroupOutput>{} : at.group.outputs);
  const auto row = at.group.archetype->efforts;
  return row != nullptr ? row(at) : std::vector<Effort>{plain_effort(at)};
}

// What a group does, its buffers as numbers of the list.
EffortMemo::GroupWork group_work(const Context& context, const Group& group, const CostTable& table,
                                 EffortMemo& memo, const std::vector<std::uint32_t>& buffers) {
  EffortMemo::GroupWork made{.work = work_of(context, group), .efforts = {}};
  made.efforts = efforts_of({context, group, made.work, table, memo});
  for (MemoryUse& use : made.work.uses) {
    const auto found = std::ranges::find(buffers, use.buffer);
    if (found == buffers.end()) throw InternalError("schedule: a group's form lacks a buffer");
    use.buffer = static_cast<std::uint32_t>(found - buffers.begin());
  }
  return made;
}

// `own`: the number of the group's first own memory.
KernelCost cost_of(const Effort& effort, const Work& work, int kernel, std::uint32_t own,
                   Caches& caches, const CostTable& table) {
  const double workers = effort.serial ? 1 : std::clamp(effort.items, 1.0, table.workers);
  Caches::Cost far;
  const auto add = [&](const Caches::Cost& one) {
    far.each += one.each;
    far.shared += one.shared;
  };
  for (const MemoryUse& use : work.uses)
    if (use.kernel == kEveryKernel || use.kernel == kernel) add(caches.touch(use));
  for (const OwnUse& use : effort.own)
    add(caches.touch(use, own + static_cast<std::uint32_t>(use.number)));
  KernelCost cost;
  // The slowest worker has a whole number of items.
  const double uneven = effort.is_balanced ? 1
                                           : std::ceil(effort.items / workers) * workers /
                                                 std::max(effort.items, 1.0);
  const double shares = effort.is_balanced ? table.workers : workers;
  cost.compute =
      (effort.cycles * uneven / shares + effort.items * table.item / workers) / table.cycles_us;
  cost.memory = std::max(far.each / workers, far.shared) / table.cycles_us;
  cost.overhead = table.launch + (effort.serial ? 0 : table.barrier);
  cost.microseconds = std::max(cost.compute, cost.memory) +
                      kExposed * std::min(cost.compute, cost.memory) + cost.overhead;
  return cost;
}

std::uint32_t own_of(const std::vector<Effort>& kernels) {
  int count = 0;
  for (const Effort& effort : kernels)
    for (const OwnUse& use : effort.own) count = std::max(count, use.number + 1);
  return static_cast<std::uint32_t>(count);
}

// Which kernels belong to the preparation (preparation.h): what they read is known before a run.
class KnownBefore {
 public:
  explicit KnownBefore(const Decisions& decisions)
      : buffers_(decisions.buffers), is_known_(decisions.buffers.size()) {
    for (std::size_t b = 0; b < buffers_.size(); ++b)
      is_known_[b] = buffers_[b].role == Role::store || buffers_[b].role == Role::constant;
  }

  // Of the next group, by kernel.
  std::vector<bool> kernels(const Work& work, const std::vector<Effort>& efforts) {
    std::vector<bool> result;
    std::vector<int> own;  // memory that is known
    for (std::size_t k = 0; k < efforts.size(); ++k) {
      // What leaves the group takes all that its kernels have made, of memory of their own or not.
      const bool is_last = std::ranges::any_of(work.uses, [&](const MemoryUse& use) {
        return use.is_write && is_of(use, static_cast<int>(k));
      });
      const bool is_known = fits(work, static_cast<int>(k)) &&
                            (!is_last || std::ranges::find(result, false) == result.end()) &&
                            std::ranges::all_of(efforts[k].own, [&](const OwnUse& use) {
                              return use.is_write || std::ranges::count(own, use.number) > 0;
                            });
      result.push_back(is_known);
      if (!is_known) continue;
      for (const OwnUse& use : efforts[k].own) own.push_back(use.number);
      for (const MemoryUse& use : work.uses)
        if (use.is_write && is_of(use, static_cast<int>(k))) is_known_[use.buffer] = true;
    }
    return result;
  }

 private:
  static bool is_of(const MemoryUse& use, int kernel) {
    return use.kernel == kEveryKernel || use.kernel == kernel;
  }
  bool fits(const Work& work, int kernel) const {
    return std::ranges::all_of(work.uses, [&](const MemoryUse& use) {
      return !is_of(use, kernel) ||
             (use.is_write ? buffers_[use.buffer].role == Role::temporary : is_known_[use.buffer]);
    });
  }

  const std::vector<ProgramBuffer>& buffers_;
  std::vector<bool> is_known_;
};

// By group and kernel; nothing where nothing is prepared, as in a step that changes the store.
std::vector<std::vector<bool>> preparation_of(const Decisions& decisions,
                                              const std::vector<Work>& works,
                                              const std::vector<std::vector<Effort>>& efforts,
                                              const std::vector<bool>& has_host_numbers) {
  std::vector<std::vector<bool>> result(works.size());
  const auto changes_store = [&](const Work& work) {
    return std::ranges::any_of(work.uses, [&](const MemoryUse& use) {
      return use.is_write && decisions.buffers[use.buffer].role == Role::store;
    });
  };
  if (!decisions.prepares || std::ranges::any_of(works, changes_store)) return result;
  KnownBefore known(decisions);
  for (std::size_t g = 0; g < works.size(); ++g)
    if (!has_host_numbers[g]) result[g] = known.kernels(works[g], efforts[g]);
  return result;
}

std::vector<Life> lives_of(std::size_t buffers, const std::vector<Work>& works) {
  std::vector<Life> lives(buffers);
  for (std::size_t g = 0; g < works.size(); ++g)
    for (const MemoryUse& use : works[g].uses) {
      Life& life = lives[use.buffer];
      life.first = std::min(life.first, g);
      life.last = std::max(life.last, g);
    }
  return lives;
}

// Temporaries take their bytes from the group that makes them to the last that reads them.
void find_peak(const Decisions& decisions, Estimate& result) {
  std::vector<std::int64_t> change(decisions.groups.size() + 1, 0);
  for (std::size_t b = 0; b < result.lives.size(); ++b) {
    const ProgramBuffer& buffer = decisions.buffers[b];
    const Life& life = result.lives[b];
    if (buffer.role != Role::temporary || life.first == SIZE_MAX) continue;
    const std::int64_t bytes = buffer.shape.numel() * dtype_bytes(buffer.dtype);
    change[life.first] += bytes;
    change[life.last + 1] -= bytes;
  }
  std::int64_t alive = 0;
  for (std::size_t g = 0; g < change.size(); ++g) {
    alive += change[g];
    if (alive <= result.peak_bytes) continue;
    result.peak_bytes = alive;
    result.peak_group = g;
  }
}

}  // namespace

double elementwise_cycles(const Work& work, const CostTable& table, int kernel) {
  const double lanes = table.target.lanes(DType::f32);
  double cycles = work.flops / lanes * table.vector_op;
  for (const MemoryUse& use : work.uses) {
    if (use.kernel != kEveryKernel && kernel != kEveryKernel && use.kernel != kernel) continue;
    switch (use.stride) {
      case Stride::none:
        break;
      case Stride::unit:
        cycles += use.accesses / lanes * table.vector_access;
        break;
      case Stride::strided:
        cycles += use.accesses * table.strided;
        break;
      case Stride::gathered:
        cycles += use.accesses * table.gathered;
        break;
    }
  }
  return cycles;
}

double GroupCost::microseconds() const {
  double sum = 0;
  for (const KernelCost& kernel : kernels) sum += kernel.microseconds;
  return sum;
}

Estimate estimate(const Decisions& decisions, const ArchetypeTable& archetypes,
                  const CostTable& table) {
  EffortMemo memo;
  return estimate(decisions, archetypes, table, memo);
}

Estimate estimate(const Decisions& decisions, const ArchetypeTable& archetypes,
                  const CostTable& table, EffortMemo& memo) {
  const ScheduleOptions options{.workers = static_cast<int>(table.workers)};
  const Context context(decisions, {archetypes, table.target}, options);
  std::vector<Work> works;
  std::vector<std::vector<Effort>> efforts;
  std::vector<bool> has_host_numbers;
  GroupForms forms(context);
  for (const Group& group : decisions.groups) {
    GroupForm form = forms.of(group);
    const EffortMemo::GroupWork& known = memo.of(std::move(form.words), [&] {
      return group_work(context, group, table, memo, form.buffers);
    });
    works.push_back(known.work);
    for (MemoryUse& use : works.back().uses) use.buffer = form.buffers[use.buffer];
    efforts.push_back(known.efforts);
    has_host_numbers.push_back(!form.hosts.empty());
  }
  const auto prepared = preparation_of(decisions, works, efforts, has_host_numbers);

  Estimate result;
  result.lives = lives_of(decisions.buffers.size(), works);
  find_peak(decisions, result);
  // The memory that groups have of their own is numbered behind the buffers.
  std::vector<std::uint32_t> own = {static_cast<std::uint32_t>(decisions.buffers.size())};
  for (const std::vector<Effort>& kernels : efforts) own.push_back(own.back() + own_of(kernels));
  Caches caches(own.back(), table);
  // The first step shows where the second finds what it needs.
  for (const bool counts : {false, true})
    for (std::size_t g = 0; g < works.size(); ++g) {
      GroupCost cost{.kernels = {}, .flops = works[g].flops, .bytes = 0};
      for (std::size_t k = 0; k < efforts[g].size(); ++k)
        cost.kernels.push_back(
            !prepared[g].empty() && prepared[g][k]
                ? KernelCost{}
                : cost_of(efforts[g][k], works[g], static_cast<int>(k), own[g], caches, table));
      if (!counts) continue;
      cost.bytes = works[g].read_bytes() + works[g].written_bytes();
      result.microseconds += cost.microseconds();
      result.flops += cost.flops;
      result.bytes += cost.bytes;
      result.launches += std::ssize(cost.kernels);
      result.groups.push_back(std::move(cost));
    }
  return result;
}

}  // namespace pantala::schedule
