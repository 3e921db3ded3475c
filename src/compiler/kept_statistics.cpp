#include "compiler/kept_statistics.h"

#include <algorithm>
#include <set>

#include "ir/rewriter.h"
#include "ops/face.h"
#include "ops/norm.h"
#include "pantala/ops.h"

namespace pantala::compiler {

namespace {

using ir::GraphData;
using ir::Node;

// Inputs of batch_norm_train.
constexpr std::size_t kWeight = 1, kBias = 2, kMean = 3, kVariance = 4;
// And its results.
constexpr std::size_t kNewMean = 1, kNewVariance = 2;

// Whether weight and bias are all frozen, as far as they are parameters.
bool is_frozen(const GraphData& graph, const Node& norm,
               const std::vector<optim::ParameterGroup>& groups) {
  bool frozen = false;
  for (const std::size_t k : {kWeight, kBias}) {
    const Node& leaf = graph.node(norm.inputs[k].node);
    if (ir::leaf_kind(*leaf.op) != LeafKind::parameter) continue;
    const optim::ParameterGroup* group = optim::find_group(groups, ir::leaf_name(leaf));
    if (!group || !group->frozen) return false;
    frozen = true;
  }
  return frozen;
}

bool keeps(const GraphData& graph, const Node& node, const TrainingStepOptions& options) {
  if (options.kept_statistics == KeptStatistics::none || !ops::is<op::BatchNormTrain>(node))
    return false;
  return options.kept_statistics == KeptStatistics::all || is_frozen(graph, node, options.groups);
}

// "bn1.running_mean": the layers of PyTorch count their batches in "bn1.num_batches_tracked".
std::string counter_beside(const std::string& mean) {
  return mean.substr(0, mean.find_last_of('.') + 1) + "num_batches_tracked";
}

// The statistics of the batch norms that keep them, and the counters beside these.
std::set<std::uint32_t> kept_leaves(const GraphData& graph, const TrainingStepOptions& options) {
  std::set<std::uint32_t> kept;
  for (const Node& node : graph.nodes()) {
    if (!keeps(graph, node, options)) continue;
    for (const std::size_t k : {kMean, kVariance}) kept.insert(node.inputs[k].node);
    const Node& mean = graph.node(node.inputs[kMean].node);
    if (!ir::leaf_kind(*mean.op)) continue;
    if (const auto counter = graph.find_leaf(counter_beside(ir::leaf_name(mean))))
      kept.insert(*counter);
  }
  return kept;
}

}  // namespace

LossGraph keep_statistics(const LossGraph& given, const TrainingStepOptions& options) {
  const GraphData& source = *given.graph.data();
  const std::set<std::uint32_t> kept = kept_leaves(source, options);
  if (kept.empty()) return given;
  const auto rule = [&](ir::Rewriter& rewriter, const Node& node,
                        const std::vector<Tensor>& inputs) -> ir::Rewriter::Results {
    if (!keeps(source, node, options)) return {};
    // Statistics of the batch stay for whoever reads them. The running ones do not move: a layer
    // that is used twice normalises with the same both times.
    ir::Rewriter::Results results =
        rewriter.target()->append(*node.op, inputs, node.attrs, node.where);
    results[0] =
        batch_norm_eval(inputs[0], inputs[kWeight], inputs[kBias], inputs[kMean], inputs[kVariance],
                        {.eps = ir::attributes<op::BatchNormTrain>(node).eps});
    results[kNewMean] = inputs[kMean];
    results[kNewVariance] = inputs[kVariance];
    return results;
  };
  LossGraph result;
  ir::Rewriter rewriter(source, result.graph.data(), rule);
  rewriter.copy_all();
  rewriter.write_outputs();
  rewriter.write_updates([&](std::uint32_t leaf) { return !kept.contains(leaf); });
  result.loss = rewriter.at(given.loss).id();
  return result;
}

}  // namespace pantala::compiler
