#include "schedule/loops.h"

namespace pantala::schedule {

using kir::Var;

std::vector<Loop> collapse(const Domain& domain, const std::vector<int>& order,
                           const std::vector<Affine>& walks,
                           const std::array<bool, kMaxLoops>& counted) {
  std::vector<Loop> loops;
  for (const int dim : order) {
    const auto at = static_cast<std::size_t>(dim);
    const std::int64_t size = domain.sizes[at];
    if (size == 1) continue;
    bool joins = !loops.empty() && !counted[at] && !counted[loops.back().dim.index()];
    for (const Affine& walk : walks)
      joins = joins && walk.coef[loops.back().dim.index()] == walk.coef[at] * size;
    if (joins)
      loops.back() = {LoopId(at), loops.back().extent * size};
    else
      loops.push_back({LoopId(at), size});
  }
  return loops;
}

std::vector<Affine> walks_of(const Footprint& footprint) {
  std::vector<Affine> walks;
  for (const Access& access : footprint.accesses) walks.push_back(access.flat);
  return walks;
}

std::int64_t total(const std::vector<Loop>& loops) {
  std::int64_t product = 1;
  for (const Loop& loop : loops) product *= loop.extent;
  return product;
}

void place(kir::Builder&, Site& site, Var number, const std::vector<Loop>& loops,
           const std::vector<Var>& extents) {
  for (std::size_t k = loops.size(); k-- > 0;) {
    const std::size_t dim = loops[k].dim.index();
    if (k == 0) {
      site.loops[dim] = number;
    } else {
      const Var rest = number / extents[k - 1];
      site.loops[dim] = number - rest * extents[k - 1];
      number = rest;
    }
  }
}

}  // namespace pantala::schedule
