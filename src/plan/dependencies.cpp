#include "plan/dependencies.h"

#include <fmt/format.h>

#include <algorithm>
#include <compare>

#include "pantala/error.h"

namespace pantala::plan {

namespace {

// Bytes of one space: the arena is space 0, region r is space r + 1.
struct Range {
  std::uint64_t space = 0;
  std::int64_t begin = 0, end = 0;
  friend auto operator<=>(const Range&, const Range&) = default;
};

// Sorted, without overlaps.
using Ranges = std::vector<Range>;

void normalise(Ranges& ranges) {
  std::ranges::sort(ranges);
  Ranges merged;
  for (const Range& r : ranges) {
    if (!merged.empty() && merged.back().space == r.space && r.begin <= merged.back().end) {
      merged.back().end = std::max(merged.back().end, r.end);
    } else {
      merged.push_back(r);
    }
  }
  ranges = std::move(merged);
}

bool intersect(const Ranges& a, const Ranges& b) {
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    if (a[i].space == b[j].space && a[i].begin < b[j].end && b[j].begin < a[i].end) return true;
    const bool a_is_behind =
        a[i].space != b[j].space ? a[i].space < b[j].space : a[i].end <= b[j].end;
    ++(a_is_behind ? i : j);
  }
  return false;
}

struct Footprint {
  Ranges reads, writes;
  bool conflicts(const Footprint& other) const {
    return intersect(writes, other.writes) || intersect(writes, other.reads) ||
           intersect(reads, other.writes);
  }
};

Footprint footprint(const Plan& plan, const Launch& launch) {
  Footprint f;
  const Signature& signature = plan.units[launch.unit].signature;
  for (const ArgumentSet& set : launch.sets) {
    if (set.items == 0) continue;
    for (std::size_t k = 0; k < set.buffers.size(); ++k) {
      const Buffer& b = plan.buffers[set.buffers[k]];
      if (b.storage == Storage::constant || b.elements == 0) continue;
      const Range range{b.storage == Storage::arena ? 0 : std::uint64_t{b.region} + 1, b.offset,
                        b.offset + b.bytes()};
      if (signature.buffers[k].access != kir::Access::write) f.reads.push_back(range);
      if (signature.buffers[k].access != kir::Access::read) f.writes.push_back(range);
    }
  }
  normalise(f.reads);
  normalise(f.writes);
  return f;
}

std::vector<Footprint> footprints(const Plan& plan) {
  std::vector<Footprint> list;
  for (const Launch& launch : plan.launches) list.push_back(footprint(plan, launch));
  return list;
}

// For each launch, the launches that are finished when it starts.
class Ancestors {
 public:
  explicit Ancestors(std::size_t launches) : bits_(launches, std::vector<bool>(launches)) {}
  void add_edge(std::size_t from, std::size_t to) {
    bits_[to][from] = true;
    for (std::size_t k = 0; k < from; ++k)
      if (bits_[from][k]) bits_[to][k] = true;
  }
  bool ordered(std::size_t from, std::size_t to) const { return bits_[to][from]; }

 private:
  std::vector<std::vector<bool>> bits_;
};

}  // namespace

void add_dependencies(Plan& plan) {
  const std::vector<Footprint> prints = footprints(plan);
  Ancestors ancestors(plan.launches.size());
  for (std::size_t to = 0; to < plan.launches.size(); ++to) {
    std::vector<std::uint32_t>& after = plan.launches[to].after;
    after.clear();
    // From the nearest back: what a nearer one has waited for needs no edge.
    for (std::size_t from = to; from-- > 0;) {
      if (ancestors.ordered(from, to) || !prints[to].conflicts(prints[from])) continue;
      after.push_back(static_cast<std::uint32_t>(from));
      ancestors.add_edge(from, to);
    }
    std::ranges::reverse(after);
  }
}

void check_dependencies(const Plan& plan) {
  const std::vector<Footprint> prints = footprints(plan);
  Ancestors ancestors(plan.launches.size());
  for (std::size_t to = 0; to < plan.launches.size(); ++to) {
    for (const std::uint32_t from : plan.launches[to].after) ancestors.add_edge(from, to);
    for (std::size_t from = 0; from < to; ++from)
      if (!ancestors.ordered(from, to) && prints[to].conflicts(prints[from]))
        throw InternalError(fmt::format(
            "plan '{}': launches {} '{}' and {} '{}' touch the same memory without an order",
            plan.name, from, plan.launches[from].name, to, plan.launches[to].name));
  }
}

void check_barriers(const Plan& plan, const std::vector<bool>& before) {
  const std::vector<Footprint> prints = footprints(plan);
  std::size_t last = 0;  // launches below are finished
  for (std::size_t to = 0; to < plan.launches.size(); ++to) {
    if (before[to]) last = to;
    for (std::size_t from = last; from < to; ++from)
      if (prints[to].conflicts(prints[from]))
        throw InternalError(fmt::format(
            "plan '{}': launches {} '{}' and {} '{}' touch the same memory without a barrier",
            plan.name, from, plan.launches[from].name, to, plan.launches[to].name));
  }
}

std::vector<bool> barriers(std::span<const Launch> launches) {
  std::vector<bool> before(launches.size());
  std::size_t last = 0;  // launches below are finished
  for (std::size_t k = 0; k < launches.size(); ++k) {
    for (const std::uint32_t a : launches[k].after)
      if (a >= last && !(launches[k].serial && launches[a].serial)) before[k] = true;
    if (before[k]) last = k;
  }
  return before;
}

}  // namespace pantala::plan
