// Placement: the order in which the leaves of a Store lie in memory. Packing is placement:
// parameters that multiply the same input lie side by side, so that their matrices are one matrix,
// and what belongs to parameters (moments, accumulators, averages) lies in the order of its
// parameters, so that updates are flat loops.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "pantala/graph.h"
#include "plan/plan.h"

namespace pantala::runtime {

struct PlacedLeaf {
  LeafKind kind = LeafKind::parameter;  // or state
  std::string name;
};

// Lists of parameters that are multiplied by the same value: those that launches of one plan read
// beside the same buffer. Names in the order of their launches; lists of one are left out.
std::vector<std::vector<std::string>> siblings(const plan::Plan& plan);

// The order as indices into `leaves`: parameters, siblings together at the place of the first one;
// then one row of states per name before a parameter's ("optim.m." of "optim.m.fc1.weight") in the
// parameters' order; then the other states.
std::vector<std::size_t> place(std::span<const PlacedLeaf> leaves,
                               std::span<const std::vector<std::string>> siblings);

}  // namespace pantala::runtime
