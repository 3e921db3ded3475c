#include "plan/arena.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "pantala/error.h"

namespace pantala::plan {

namespace {

constexpr std::int64_t round_up(std::int64_t n) {
  return (n + kAlignment - 1) / kAlignment * kAlignment;
}

// Times at which a request is live, both ends included: launches or phases.
struct Life {
  int begin = -1, end = -1;
  bool meets(const Life& other) const { return begin <= other.end && other.begin <= end; }
};

struct Touch {
  std::size_t first = SIZE_MAX, last = 0;  // launches
  bool used() const { return first != SIZE_MAX; }
};

std::vector<Touch> find_touches(std::span<const ArenaRequest> requests,
                                std::span<const ArenaUse> launches) {
  std::vector<Touch> touches(requests.size());
  const auto touch = [&](std::uint32_t r, std::size_t launch, bool writes) {
    if (r >= requests.size())
      throw InternalError(fmt::format("memory planner: launch {} touches request {} of {}", launch,
                                      r, requests.size()));
    if (!writes && !touches[r].used() && requests[r].bytes != 0)
      throw InternalError(fmt::format(
          "memory planner: launch {} reads request {}, which nothing has written", launch, r));
    if (!touches[r].used()) touches[r].first = launch;
    touches[r].last = launch;
  };
  for (std::size_t k = 0; k < launches.size(); ++k) {
    // Writes first: what a launch both writes and reads is its own affair.
    for (const std::uint32_t r : launches[k].writes) touch(r, k, true);
    for (const std::uint32_t r : launches[k].reads) touch(r, k, false);
  }
  for (std::size_t r = 0; r < requests.size(); ++r) {
    if (requests[r].bytes < 0)
      throw InternalError(
          fmt::format("memory planner: request {} has {} bytes", r, requests[r].bytes));
    if (!touches[r].used() && requests[r].bytes != 0)
      throw InternalError(fmt::format("memory planner: nothing writes request {}", r));
  }
  return touches;
}

class Planner {
 public:
  Planner(std::span<const ArenaRequest> requests, std::span<const ArenaUse> launches,
          const ArenaOptions& options)
      : requests_(requests), launches_(launches), touches_(find_touches(requests, launches)) {
    phases_.resize(launches.size());
    std::iota(phases_.begin(), phases_.end(), 0);
    if (!options.reuse_between_independent_launches)
      phases_ = launch_phases(requests.size(), launches);
    for (std::size_t r = 0; r < requests.size(); ++r) {
      if (!touches_[r].used())  // without bytes: it lives nowhere
        lives_.push_back({0, 0});
      else
        lives_.push_back({phases_[touches_[r].first], requests[r].outlives
                                                          ? std::numeric_limits<int>::max()
                                                          : phases_[touches_[r].last]});
    }
    plan_.aliases.resize(requests.size());
    std::iota(plan_.aliases.begin(), plan_.aliases.end(), 0U);
  }

  ArenaPlan run() {
    alias();
    group();
    plan_.lower_bound = lower_bound();
    plan_.peak = std::numeric_limits<std::int64_t>::max();
    // No single order is best; each is cheap. The first one wins ties.
    const auto duration = [&](std::size_t g) {
      return static_cast<double>(std::min(end_of(g), int(launches_.size())) - begin_of(g) + 1);
    };
    place([&](std::size_t g) { return -static_cast<double>(size_of(g)); });
    place([&](std::size_t g) { return -static_cast<double>(size_of(g)) * duration(g); });
    place([&](std::size_t g) { return -duration(g); });
    place([&](std::size_t g) { return static_cast<double>(begin_of(g)); });
    if (requests_.empty()) plan_.peak = 0;
    return std::move(plan_);
  }

 private:
  // Whether a launch of the same phase, other than `launch`, touches the request.
  bool shared_in_phase(std::uint32_t request, std::size_t launch) const {
    const auto touches = [&](std::size_t k) {
      return std::ranges::count(launches_[k].reads, request) +
                 std::ranges::count(launches_[k].writes, request) >
             0;
    };
    for (std::size_t k = launch; k-- > 0 && phases_[k] == phases_[launch];)
      if (touches(k)) return true;
    for (std::size_t k = launch + 1; k < launches_.size() && phases_[k] == phases_[launch]; ++k)
      if (touches(k)) return true;
    return false;
  }

  void alias() {
    std::vector<bool> taken(requests_.size());
    for (std::size_t k = 0; k < launches_.size(); ++k)
      for (const auto& [output, input] : launches_[k].in_place) {
        if (output >= requests_.size() || input >= requests_.size() || output == input)
          throw InternalError(
              fmt::format("memory planner: launch {} names no pair to work in place", k));
        const bool born_here = touches_[output].first == k && plan_.aliases[output] == output;
        const bool dies_here = touches_[input].last == k && touches_[input].first < k &&
                               !requests_[input].outlives && !taken[input];
        if (!born_here || !dies_here || requests_[output].bytes > requests_[input].bytes) continue;
        if (shared_in_phase(input, k)) continue;
        plan_.aliases[output] = input;
        taken[input] = true;
      }
  }

  // Requests that share a place, in the order of their lives; each occupies its own bytes for its
  // own life.
  void group() {
    std::vector<std::size_t> group_of(requests_.size());
    std::vector<std::uint32_t> order(requests_.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::stable_sort(order, {}, [&](std::uint32_t r) { return touches_[r].first; });
    for (const std::uint32_t r : order) {
      const std::uint32_t root = plan_.aliases[r];
      if (root == r) groups_.emplace_back();
      group_of[r] = root == r ? groups_.size() - 1 : group_of[root];
      groups_[group_of[r]].push_back(r);
    }
  }
  int begin_of(std::size_t g) const { return lives_[groups_[g].front()].begin; }
  int end_of(std::size_t g) const { return lives_[groups_[g].back()].end; }
  std::int64_t size_of(std::size_t g) const { return requests_[groups_[g].front()].bytes; }

  // The largest sum of what is live at once. At the launch where one member of a group takes over
  // from another, both are, in the same place.
  std::int64_t lower_bound() const {
    std::vector<std::int64_t> live(
        static_cast<std::size_t>(phases_.empty() ? 0 : phases_.back() + 1));
    for (const auto& members : groups_)
      for (std::size_t m = 0; m < members.size(); ++m) {
        const Life& life = lives_[members[m]];
        const int begin = m == 0 ? life.begin : life.begin + 1;
        for (int t = begin; t <= std::min(life.end, static_cast<int>(live.size()) - 1); ++t)
          live[static_cast<std::size_t>(t)] += requests_[members[m]].bytes;
      }
    return live.empty() ? 0 : *std::ranges::max_element(live);
  }

  // Places the groups one after the other, smallest key first, and keeps the result if its peak is
  // the smallest so far.
  void place(const std::function<double(std::size_t)>& key) {
    if (plan_.peak == plan_.lower_bound) return;
    std::vector<std::size_t> order(groups_.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, {}, [&](std::size_t g) {
      return std::pair(key(g), -static_cast<double>(size_of(g)));
    });
    std::vector<std::int64_t> offsets(requests_.size());
    std::vector<std::uint32_t> placed;
    std::int64_t peak = 0;
    for (const std::size_t g : order) {
      const std::int64_t offset = best_fit(g, placed, offsets);
      for (const std::uint32_t r : groups_[g]) {
        offsets[r] = offset;
        placed.push_back(r);
        peak = std::max(peak, offset + requests_[r].bytes);
      }
    }
    if (peak >= plan_.peak) return;
    plan_.peak = peak;
    plan_.offsets = std::move(offsets);
  }

  // The offset in the tightest gap between what is placed, or behind it all.
  std::int64_t best_fit(std::size_t g, const std::vector<std::uint32_t>& placed,
                        const std::vector<std::int64_t>& offsets) {
    forbidden_.clear();
    for (const std::uint32_t r : groups_[g])
      for (const std::uint32_t p : placed)
        if (lives_[r].meets(lives_[p]) && requests_[r].bytes > 0 && requests_[p].bytes > 0)
          forbidden_.emplace_back(offsets[p] - round_up(requests_[r].bytes) + 1,
                                  offsets[p] + round_up(requests_[p].bytes));
    std::ranges::sort(forbidden_);
    std::int64_t at = 0, best = -1, slack = std::numeric_limits<std::int64_t>::max();
    for (const auto& [begin, end] : forbidden_) {
      if (begin > at && begin - at < slack) best = at, slack = begin - at;
      at = std::max(at, end);
    }
    return best >= 0 ? best : at;
  }

  std::span<const ArenaRequest> requests_;
  std::span<const ArenaUse> launches_;
  std::vector<Touch> touches_;
  std::vector<int> phases_;
  std::vector<Life> lives_;
  std::vector<std::vector<std::uint32_t>> groups_;
  // Offsets that would collide: [begin, end).
  std::vector<std::pair<std::int64_t, std::int64_t>> forbidden_;
  ArenaPlan plan_;
};

}  // namespace

std::vector<int> launch_phases(std::size_t requests, std::span<const ArenaUse> launches) {
  std::vector<int> written(requests, -1), read(requests, -1), phases;  // the last phase that did
  int phase = 0;
  for (const ArenaUse& use : launches) {
    const bool waits =
        std::ranges::any_of(use.reads, [&](std::uint32_t r) { return written[r] == phase; }) ||
        std::ranges::any_of(
            use.writes, [&](std::uint32_t r) { return written[r] == phase || read[r] == phase; });
    if (waits) ++phase;
    for (const std::uint32_t r : use.reads) read[r] = phase;
    for (const std::uint32_t r : use.writes) written[r] = phase;
    phases.push_back(phase);
  }
  return phases;
}

ArenaPlan plan_arena(std::span<const ArenaRequest> requests, std::span<const ArenaUse> launches,
                     const ArenaOptions& options) {
  return Planner(requests, launches, options).run();
}

ArenaPlan place_arena(Plan& plan, std::span<const std::uint32_t> outlives,
                      std::span<const std::vector<ArenaUse::InPlace>> in_place,
                      const ArenaOptions& options) {
  constexpr std::uint32_t kNone = UINT32_MAX;
  std::vector<std::uint32_t> request_of(plan.buffers.size(), kNone);
  std::vector<ArenaRequest> requests;
  for (std::uint32_t b = 0; b < plan.buffers.size(); ++b) {
    if (plan.buffers[b].storage != Storage::arena) continue;
    request_of[b] = static_cast<std::uint32_t>(requests.size());
    requests.push_back({plan.buffers[b].bytes(), std::ranges::find(outlives, b) != outlives.end()});
  }
  std::vector<ArenaUse> uses(plan.launches.size());
  for (std::size_t k = 0; k < plan.launches.size(); ++k) {
    const Signature& signature = plan.units[plan.launches[k].unit].signature;
    for (const ArgumentSet& set : plan.launches[k].sets)
      for (std::size_t a = 0; a < set.buffers.size(); ++a) {
        const std::uint32_t r = request_of[set.buffers[a]];
        if (r == kNone) continue;
        if (signature.buffers[a].access != kir::Access::write) uses[k].reads.push_back(r);
        if (signature.buffers[a].access != kir::Access::read) uses[k].writes.push_back(r);
      }
    if (k >= in_place.size()) continue;
    for (const auto& [output, input] : in_place[k])
      if (request_of[output] != kNone && request_of[input] != kNone)
        uses[k].in_place.push_back({request_of[output], request_of[input]});
  }
  ArenaPlan memory = plan_arena(requests, uses, options);
  for (std::size_t b = 0; b < plan.buffers.size(); ++b)
    if (request_of[b] != kNone) plan.buffers[b].offset = memory.offsets[request_of[b]];
  plan.arena_bytes = memory.peak;
  return memory;
}

}  // namespace pantala::plan
