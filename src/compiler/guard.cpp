#include "compiler/guard.h"

#include "ir/graph_data.h"
#include "ops/host_scalars.h"
#include "pantala/error.h"
#include "pantala/ops.h"
#include "plan/step_names.h"

namespace pantala::compiler {

namespace {

// The largest magnitude is finite if all are; a sum of them could overflow.
Tensor all_finite(const Tensor& x) { return is_finite(x.rank() == 0 ? x : amax(abs(x))); }
// A gradient whose squares have no sum is no use though each of its numbers is finite: it makes
// second moments infinite, which stops their weights for good, and a clipped one is zero.
Tensor norm_is_finite(const Tensor& gradient) { return is_finite(sum(square(gradient))); }

}  // namespace

Graph guard_updates(Graph graph, NonFiniteGuard guard, const Tensor& loss,
                    const std::vector<Tensor>& gradients) {
  if (guard == NonFiniteGuard::none) return graph;
  for (const auto& [name, value] : graph.outputs())
    if (name == plan::kFiniteOutput)
      throw TypeError(
          "the output name 'finite' belongs to the guard against numbers that are not finite; "
          "rename the output, or compile with non_finite = none");
  Tensor finite = all_finite(loss);
  if (guard == NonFiniteGuard::gradients)
    for (const Tensor& gradient : gradients)
      if (gradient.numel() > 0) finite = logical_and(finite, norm_is_finite(gradient));
  const std::vector<bool> host = ops::host_scalars(*graph.data());
  auto updates = graph.updates();
  for (auto& [leaf, value] : updates)
    if (!host[leaf.id().node]) value = where(finite, value, leaf);
  Graph guarded = std::move(graph).without_updates();
  for (const auto& [leaf, value] : updates) guarded.update(leaf, value);
  guarded.output(plan::kFiniteOutput, finite);
  return guarded;
}

}  // namespace pantala::compiler
