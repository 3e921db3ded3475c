// What the kernels of a GPU share: numbers of elements taken apart into the loops of a domain, and
// the launch of a finished kernel.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/arguments.h"
#include "schedule/building.h"
#include "schedule/loops.h"

namespace pantala::schedule::gpu {

inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// Loops that one number counts; the last one counts fastest.
class LoopNest {
 public:
  LoopNest(kir::Builder& b, std::vector<Loop> loops, Arguments& arguments);
  std::int64_t count() const { return total(loops_); }
  // Enters the indices of the element with this number.
  void place(kir::Builder& b, Site& site, kir::Var number) const;

 private:
  std::vector<Loop> loops_;
  std::vector<kir::Var> extents_;  // of all but the first
};

// The loops from `first` to `first + count` of a domain, as a footprint walks them.
std::vector<Loop> loops_between(const Domain& domain, int first, int count,
                                const std::vector<Affine>& walks,
                                const std::array<bool, kMaxLoops>& counted);

// Ends the kernel, and fills in what it takes.
KernelDraft finished(KernelDraft draft, kir::Builder& b, const Arguments& arguments);

}  // namespace pantala::schedule::gpu
