// What a group is made of, in the user's words: for tables of kernels and traces.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/context.h"

namespace pantala::schedule {

struct Contents {
  // The layers whose ops it computes, "fc1, fc2"; where no op has a layer those of the parameters
  // that it reads, or else the outputs and states that it makes; "" if there are none either.
  std::string layers;
  // The ops that are computed, "contract, add, relu", with those that only move elements left out.
  std::string ops;
};

// The nodes of a group, and what it takes from memory or the host.
struct GroupNodes {
  std::vector<std::uint32_t> computed;  // in the graph's order
  std::vector<ValueId> read, stored;
};
// Of all groups, in their order.
std::vector<GroupNodes> nodes_of(const Decisions& decisions, const Machine& machine,
                                 const ScheduleOptions& options);

Contents contents_of(const Context& context, const Group& group);

}  // namespace pantala::schedule
