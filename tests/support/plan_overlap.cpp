#include "support/plan_overlap.h"

#include <fmt/format.h>

#include <set>
#include <vector>

namespace pantala::tests {

namespace {

// The arena buffers that a launch touches.
struct Touched {
  std::set<std::uint32_t> reads, writes;
};

Touched touched_by(const plan::Plan& plan, const plan::Launch& launch) {
  Touched touched;
  const plan::Signature& signature = plan.units[launch.unit].signature;
  for (const plan::ArgumentSet& set : launch.sets) {
    if (set.items == 0) continue;
    for (std::size_t k = 0; k < set.buffers.size(); ++k) {
      const std::uint32_t b = set.buffers[k];
      if (plan.buffers[b].storage != plan::Storage::arena || plan.buffers[b].bytes() == 0) continue;
      const kir::Access access = signature.buffers[k].access;
      if (access != kir::Access::write) touched.reads.insert(b);
      if (access != kir::Access::read) touched.writes.insert(b);
    }
  }
  return touched;
}

bool share_bytes(const plan::Plan& plan, std::uint32_t a, std::uint32_t b) {
  const plan::Buffer &x = plan.buffers[a], &y = plan.buffers[b];
  return x.offset < y.offset + y.bytes() && y.offset < x.offset + x.bytes();
}

// Whether one of `a` and one of `b` share bytes; their numbers if so.
std::string shared(const plan::Plan& plan, const std::set<std::uint32_t>& a,
                   const std::set<std::uint32_t>& b) {
  for (const std::uint32_t x : a)
    for (const std::uint32_t y : b)
      if (share_bytes(plan, x, y))
        return fmt::format("'{}' and '{}'", plan.buffers[x].name, plan.buffers[y].name);
  return "";
}

// earlier[k][j]: launch j has finished when launch k begins.
std::vector<std::vector<bool>> order_of(const plan::Plan& plan) {
  std::vector<std::vector<bool>> earlier;
  for (const plan::Launch& launch : plan.launches) {
    std::vector<bool> before(plan.launches.size());
    for (const std::uint32_t j : launch.after) {
      before[j] = true;
      for (std::size_t i = 0; i < j; ++i) before[i] = before[i] || earlier[j][i];
    }
    earlier.push_back(std::move(before));
  }
  return earlier;
}

// Launches one after the other: whose content the bytes of each buffer are.
std::string lost_content(const plan::Plan& plan, const std::vector<Touched>& touched) {
  std::vector<bool> intact(plan.buffers.size());  // written, and not written over since
  for (std::size_t k = 0; k < touched.size(); ++k) {
    for (const std::uint32_t b : touched[k].reads)
      if (!intact[b] && !touched[k].writes.contains(b))
        return fmt::format("launch {} '{}' reads '{}', whose content is not there", k,
                           plan.launches[k].name, plan.buffers[b].name);
    for (const std::uint32_t w : touched[k].writes)
      for (std::uint32_t b = 0; b < plan.buffers.size(); ++b)
        if (b != w && plan.buffers[b].storage == plan::Storage::arena && share_bytes(plan, b, w))
          intact[b] = false;
    for (const std::uint32_t w : touched[k].writes) {
      for (const std::uint32_t other : touched[k].writes)
        if (other != w && share_bytes(plan, w, other))
          return fmt::format("launch {} writes '{}' and '{}' to the same bytes", k,
                             plan.buffers[w].name, plan.buffers[other].name);
      intact[w] = true;
    }
  }
  return "";
}

}  // namespace

std::string memory_offence(const plan::Plan& plan) {
  std::vector<Touched> touched;
  for (const plan::Launch& launch : plan.launches) touched.push_back(touched_by(plan, launch));
  for (const plan::Buffer& buffer : plan.buffers)
    if (buffer.storage == plan::Storage::arena &&
        (buffer.offset < 0 || buffer.offset + buffer.bytes() > plan.arena_bytes))
      return fmt::format("'{}' is not inside of the arena", buffer.name);
  const std::vector<std::vector<bool>> earlier = order_of(plan);
  for (std::size_t k = 0; k < touched.size(); ++k)
    for (std::size_t j = 0; j < k; ++j) {
      if (earlier[k][j]) continue;
      for (const std::string& pair : {shared(plan, touched[j].writes, touched[k].writes),
                                      shared(plan, touched[j].writes, touched[k].reads),
                                      shared(plan, touched[j].reads, touched[k].writes)})
        if (!pair.empty())
          return fmt::format("launches {} and {} may run at once on the bytes of {}", j, k, pair);
    }
  return lost_content(plan, touched);
}

}  // namespace pantala::tests
