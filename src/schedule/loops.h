// The loops of a kernel over a domain: axes that every access walks through together become one
// loop, so that a bias along 128 columns of 32 rows has two loops and an update of any weight one.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/emitter.h"
#include "schedule/index.h"

namespace pantala::schedule {

struct Loop {
  LoopId dim;  // the loop of the domain that counts for all of its axes; the others stay at 0
  std::int64_t extent = 1;
};

// Loops from the outermost to the innermost. `order` lists the domain's loops in that order;
// `walks` are all accesses, reads and writes, and `counted` the loops whose number is used.
std::vector<Loop> collapse(const Domain& domain, const std::vector<int>& order,
                           const std::vector<Affine>& walks,
                           const std::array<bool, kMaxLoops>& counted);

// The affine part of everything that a footprint reads.
std::vector<Affine> walks_of(const Footprint& footprint);

std::int64_t total(const std::vector<Loop>& loops);

// Takes a number apart into the indices of the given loops (the last one counts fastest) and enters
// them into a site. `extents` are those of all loops but the first.
void place(kir::Builder& b, Site& site, kir::Var number, const std::vector<Loop>& loops,
           const std::vector<kir::Var>& extents);

}  // namespace pantala::schedule
