#include "runtime/store_leaves.h"

#include <algorithm>

namespace pantala::runtime {

namespace {

bool touches(const plan::CompiledStep& step, const std::string& name) {
  const auto in_region = [&](const plan::Region& region) {
    return region.storage == plan::Storage::store && region.name == name;
  };
  const auto on_host = [&](const plan::HostPart::Leaf& leaf) { return leaf.name == name; };
  return std::ranges::any_of(step.plan.regions, in_region) ||
         std::ranges::any_of(step.host.leaves(), on_host);
}

}  // namespace

std::vector<StoreLeaf> store_leaves(const CompiledPlan::Data& data) {
  std::vector<StoreLeaf> leaves;
  for (const plan::CompiledLeaf& leaf : data.leaves) {
    if (leaf.kind == LeafKind::input) continue;
    const bool is_touched = std::ranges::any_of(
        data.steps, [&](const plan::CompiledStep& step) { return touches(step, leaf.name); });
    leaves.push_back({leaf.kind, leaf.name, leaf.type, leaf.on_host, leaf.init, is_touched});
  }
  return leaves;
}

}  // namespace pantala::runtime
