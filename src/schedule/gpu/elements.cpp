#include "schedule/gpu/elements.h"

#include <numeric>

namespace pantala::schedule::gpu {

using kir::Var;

LoopNest::LoopNest(kir::Builder& b, std::vector<Loop> loops, Arguments& arguments)
    : loops_(std::move(loops)) {
  for (std::size_t k = 1; k < loops_.size(); ++k)
    extents_.push_back(arguments.integer(b, "extent", loops_[k].extent));
}

void LoopNest::place(kir::Builder& b, Site& site, Var number) const {
  schedule::place(b, site, number, loops_, extents_);
}

std::vector<Loop> loops_between(const Domain& domain, int first, int count,
                                const std::vector<Affine>& walks,
                                const std::array<bool, kMaxLoops>& counted) {
  std::vector<int> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), first);
  return collapse(domain, order, walks, counted);
}

KernelDraft finished(KernelDraft draft, kir::Builder& b, const Arguments& arguments) {
  draft.kernel = b.finish();
  draft.set.buffers = arguments.buffers();
  draft.set.params = arguments.params();
  return draft;
}

}  // namespace pantala::schedule::gpu
