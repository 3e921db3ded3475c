// Losses that a file may carry, as the ops of the same meaning.
#include <fmt/format.h>

#include "onnx/adapters.h"

namespace pantala::onnx {

namespace {

Reduction read_reduction(const Node& node) {
  const std::string name = node.attribute("reduction", std::string("mean"));
  if (name == "mean") return Reduction::mean;
  if (name == "sum") return Reduction::sum;
  if (name != "none") node.fail(fmt::format("reduction '{}'", name));
  return Reduction::none;
}

std::optional<Tensor> class_weights(Node& node) {
  return node.has(2) ? std::optional(node.tensor(2)) : std::nullopt;
}

void convert_nll_loss(Node& node) {
  node.give(nll_loss(node.tensor(0), node.tensor(1),
                     {.reduction = read_reduction(node),
                      .ignore_index = node.attribute("ignore_index", kIgnoredLabel),
                      .weight = class_weights(node)}));
}

void convert_cross_entropy(Node& node) {
  const Tensor logits = node.tensor(0);
  node.give(cross_entropy(logits, node.tensor(1),
                          {.reduction = read_reduction(node),
                           .ignore_index = node.attribute("ignore_index", kIgnoredLabel),
                           .weight = class_weights(node)}));
  if (node.wants(1)) node.give(1, log_softmax(logits, 1));
}

constexpr Adapter kLossAdapters[] = {
    {"NegativeLogLikelihoodLoss", convert_nll_loss, false, true},
    {"SoftmaxCrossEntropyLoss", convert_cross_entropy, false, true},
};

}  // namespace

std::span<const Adapter> loss_adapters() { return kLossAdapters; }

}  // namespace pantala::onnx
