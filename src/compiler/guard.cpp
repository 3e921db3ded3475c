#include "compiler/guard.h"

#include <algorithm>
#include <map>

#include "compiler/step_graphs.h"
#include "ir/graph_data.h"
#include "ops/face.h"
#include "ops/host_scalars.h"
#include "ops/watched.h"
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

void check_name(const Graph& graph) {
  for (const auto& [name, value] : graph.outputs())
    if (name == plan::kFiniteOutput)
      throw TypeError(
          "the output name 'finite' belongs to the guard against numbers that are not finite; "
          "rename the output, or compile with non_finite = none");
}

Tensor watched(const std::vector<Tensor>& values) {
  return ops::apply(ops::def<op::Watched>(), {values.begin(), values.end()}, {})[0];
}

// Watches the new values of a graph's updates. Results of one node (a weight and its moments) are
// watched together, with the square of the weight's gradient: a kernel asks once an element.
class Watch {
 public:
  explicit Watch(const std::vector<TrainedParameter>& parameters) {
    for (const TrainedParameter& p : parameters)
      if (!p.frozen()) gradients_.emplace(p.value.id(), p.gradient);
  }

  // `made` are the values before they were selected.
  void run(std::vector<std::pair<Tensor, Tensor>>& updates, const std::vector<Tensor>& made) const {
    std::map<std::uint32_t, std::vector<std::size_t>> siblings;
    for (std::size_t k = 0; k < updates.size(); ++k)
      if (made[k].valid() && is_float(made[k].dtype())) siblings[made[k].id().node].push_back(k);
    for (auto& [node, list] : siblings) {
      std::ranges::stable_sort(list, {}, [&](std::size_t k) { return !gradient_of(updates[k]); });
      const std::size_t first = list[0];
      std::vector<Tensor> together{updates[first].second};
      if (const Tensor* gradient = gradient_of(updates[first]))
        together.push_back(square(*gradient));
      for (const std::size_t k : list) {
        if (k == first) continue;
        if (updates[k].second.type() == updates[first].second.type())
          together.push_back(updates[k].second);
        else
          updates[k].second = watched({updates[k].second});
      }
      updates[first].second = watched(together);
    }
  }

 private:
  const Tensor* gradient_of(const std::pair<Tensor, Tensor>& update) const {
    const auto found = gradients_.find(update.first.id());
    return found == gradients_.end() || found->second.type() != update.second.type()
               ? nullptr
               : &found->second;
  }
  std::map<ValueId, Tensor> gradients_;  // by the parameter's leaf
};

}  // namespace

NonFiniteGuard effective_guard(const CompileOptions& options) {
  const bool waits = splits_update(options) || options.training.clip.norm.has_value();
  return options.non_finite == NonFiniteGuard::watched && waits ? NonFiniteGuard::gradients
                                                                : options.non_finite;
}

Graph guard_updates(Graph graph, NonFiniteGuard guard, const Tensor& loss,
                    const std::vector<TrainedParameter>& parameters) {
  if (guard == NonFiniteGuard::none) return graph;
  check_name(graph);
  Tensor finite = all_finite(loss);
  if (guard == NonFiniteGuard::gradients)
    for (const TrainedParameter& p : parameters)
      if (!p.frozen() && p.gradient.numel() > 0)
        finite = logical_and(finite, norm_is_finite(p.gradient));
  const std::vector<bool> host = ops::host_scalars(*graph.data());
  auto updates = graph.updates();
  std::vector<Tensor> made(updates.size());
  for (std::size_t k = 0; k < updates.size(); ++k) {
    auto& [leaf, value] = updates[k];
    if (host[leaf.id().node]) continue;
    made[k] = value;
    value = where(finite, value, leaf);
  }
  if (guard == NonFiniteGuard::watched) Watch(parameters).run(updates, made);
  Graph guarded = std::move(graph).without_updates();
  for (const auto& [leaf, value] : updates) guarded.update(leaf, value);
  guarded.output(plan::kFiniteOutput, finite);
  return guarded;
}

}  // namespace pantala::compiler
