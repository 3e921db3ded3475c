#include "kir/shadow.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace pantala::kir {

namespace {
std::string agent_name(const Agent& a) {
  if (a.item == Agent::kSeveral) return "other items";
  if (a.thread == Agent::kSeveral) return fmt::format("other threads of item {}", a.item);
  return a.thread == Agent::kAllThreads ? fmt::format("item {}", a.item)
                                        : fmt::format("thread {} of item {}", a.thread, a.item);
}
}  // namespace

Shadow::Shadow(const Kernel& kernel, const Arguments& arguments) : views_(kernel.buffers.size()) {
  bind_globals(arguments);
  for (std::size_t k = arguments.buffers.size(); k < kernel.buffers.size(); ++k) {
    views_[k] = {regions_.size(), 0, 1, true};
    regions_.emplace_back(static_cast<std::size_t>(kernel.buffers[k].size));
  }
}

void Shadow::bind_globals(const Arguments& arguments) {
  const std::vector<BoundBuffer>& buffers = arguments.buffers;
  const auto bytes = [&](std::size_t k) {
    return buffers[k].elements * dtype_bytes(buffers[k].dtype);
  };
  std::vector<std::size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::ranges::less{},
                           [&](std::size_t k) { return buffers[k].data; });
  for (std::size_t first = 0; first < order.size();) {
    // Grow the region while the next buffer starts inside; a cell is the largest unit that divides
    // all offsets and elements.
    const std::byte* base = buffers[order[first]].data;
    std::int64_t size = 0, unit = 0;
    std::size_t last = first;
    for (; last < order.size(); ++last) {
      const BoundBuffer& b = buffers[order[last]];
      if (last != first && (b.data - base >= size || b.elements == 0)) break;
      size = std::max(size, b.data - base + bytes(order[last]));
      unit = std::gcd(std::gcd(unit, b.data - base), dtype_bytes(b.dtype));
    }
    for (; first < last; ++first) {
      const BoundBuffer& b = buffers[order[first]];
      views_[order[first]] = {regions_.size(), (b.data - base) / unit, dtype_bytes(b.dtype) / unit,
                              false};
    }
    regions_.emplace_back(static_cast<std::size_t>(size / unit));
  }
}

bool Shadow::concurrent(const Agent& other, const Agent& agent) {
  if (other.item == Agent::kNone) return false;
  if (other.item != agent.item) return true;
  return other.phase == agent.phase && other.thread != agent.thread;
}

std::string Shadow::read(std::size_t buffer, std::int64_t element, const Agent& agent) {
  const View& view = views_[buffer];
  for (std::int64_t k = 0; k < view.per_element; ++k) {
    Cell& cell = regions_[view.region]
                         [static_cast<std::size_t>(view.offset + element * view.per_element + k)];
    if (view.scratch && cell.writer.item != agent.item)
      return "it has not been written by this item";
    if (concurrent(cell.writer, agent))
      return fmt::format("a race: {} has written it", agent_name(cell.writer));
    if (cell.reader.item == Agent::kNone || (view.scratch && cell.reader.item != agent.item)) {
      cell.reader = agent;
    } else if (cell.reader.item != agent.item) {
      cell.reader.item = Agent::kSeveral;
    } else if (cell.reader.phase != agent.phase) {
      cell.reader = agent;
    } else if (cell.reader.thread != agent.thread) {
      cell.reader.thread = Agent::kSeveral;
    }
  }
  return "";
}

std::string Shadow::write(std::size_t buffer, std::int64_t element, const Agent& agent) {
  const View& view = views_[buffer];
  for (std::int64_t k = 0; k < view.per_element; ++k) {
    Cell& cell = regions_[view.region]
                         [static_cast<std::size_t>(view.offset + element * view.per_element + k)];
    // What earlier items left in scratch is of no concern.
    if (view.scratch && cell.writer.item != agent.item) cell = {};
    if (concurrent(cell.writer, agent))
      return fmt::format("a race: {} has written it", agent_name(cell.writer));
    if (concurrent(cell.reader, agent))
      return fmt::format("a race: {} has read it", agent_name(cell.reader));
    cell.writer = agent;
  }
  return "";
}

}  // namespace pantala::kir
