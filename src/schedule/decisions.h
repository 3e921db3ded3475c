// What the scheduler decides about a lowered graph before any kernel is built: which nodes share a
// kernel, which values are stored, where and in which order of axes, what the host computes, and in
// which order the groups run. Plain data: an alternative can be made and judged without building
// anything.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "schedule/archetype.h"
#include "schedule/program.h"

namespace pantala::schedule {

// Where a group leaves a value.
constexpr std::uint32_t kNoBuffer = UINT32_MAX;  // not decided yet: row-major
struct GroupOutput {
  ValueId value;
  std::uint32_t buffer = kNoBuffer;
};

// Nodes that share a kernel.
struct Group {
  const Archetype* archetype = nullptr;
  std::vector<std::uint32_t> anchors = {};  // nodes that are not element by element, in order
  // What it stores; everything else is recomputed by its readers.
  std::vector<GroupOutput> outputs = {};
  bool is_copy = false;  // of a value that stands already: it is loaded, not computed
};

struct Decisions {
  std::shared_ptr<const Graph> graph;            // the lowered one, which nobody changes any more
  std::vector<bool> host = {};                   // per node: whether the host computes it
  std::vector<ProgramBuffer> buffers = {};       // of leaves, outputs and temporaries
  std::map<ValueId, std::uint32_t> places = {};  // stored values and their buffers
  std::vector<StatusMessage> messages = {};      // of indices that kernels check
  std::vector<Group> groups = {};                // in an order in which they can be run
  bool prepares = false;                         // ScheduleOptions::prepares
  std::uint64_t emitted = 0;                     // elements that the emitter was asked for
  std::uint64_t searched = 0;                    // groups that were looked at to make the groups
};

}  // namespace pantala::schedule
