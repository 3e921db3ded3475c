// Losses, all from raw logits where there are any, all scalar means by default.
#pragma once

#include <cstdint>
#include <optional>

#include "pantala/tensor.h"

namespace pantala {

enum class Reduction { mean, sum, none };

// A class target that nothing is learnt from, unless a loss is told another one; as in PyTorch.
inline constexpr std::int64_t kIgnoredLabel = -100;

struct LossOptions {
  Reduction reduction = Reduction::mean;
};
struct HuberOptions {
  double delta = 1;
  Reduction reduction = Reduction::mean;
};
struct CrossEntropyOptions {
  Reduction reduction = Reduction::mean;
  double label_smoothing = 0;
  std::int64_t ignore_index = kIgnoredLabel;  // class targets only
  std::optional<Tensor> weight = {};          // per class
};
struct NllOptions {
  Reduction reduction = Reduction::mean;
  std::int64_t ignore_index = kIgnoredLabel;
  std::optional<Tensor> weight = {};  // per class
};
struct BceOptions {
  Reduction reduction = Reduction::mean;
  std::optional<Tensor> weight = {};  // per element, broadcast
};
struct BceWithLogitsOptions {
  Reduction reduction = Reduction::mean;
  std::optional<Tensor> weight = {};      // per element, broadcast
  std::optional<Tensor> pos_weight = {};  // of the positive term, broadcast
};

// Prediction and target broadcast right-aligned.
Tensor mse_loss(Operand prediction, Operand target, const LossOptions& options = {});
Tensor rmse_loss(Operand prediction, Operand target);  // gradient 0 at zero error
Tensor l1_loss(Operand prediction, Operand target, const LossOptions& options = {});
Tensor huber_loss(Operand prediction, Operand target, const HuberOptions& options = {});
// huber / delta; delta 0 is l1_loss.
Tensor smooth_l1_loss(Operand prediction, Operand target, const HuberOptions& options = {});

// Logits have their classes on axis 1 (on axis 0 if they have one axis only). Integer targets name
// a class and have one axis less; float targets are probabilities of the logits' shape. A class
// that is out of range is a ValueError when the loss is computed. With classes the mean is the sum
// over rows divided by the sum of their classes' weights, without the ignored rows: if all are
// ignored it is 0/0, NaN, as in PyTorch (their gradient is 0). With probabilities it is divided by
// the number of rows.
Tensor cross_entropy(Operand logits, Operand target, const CrossEntropyOptions& options = {});
// The same from log-probabilities and class targets.
Tensor nll_loss(Operand log_probabilities, Operand target, const NllOptions& options = {});
// KL divergence of softmax(logits) from the target probabilities: sum over classes (last axis),
// mean over rows; zeros in the target add 0.
Tensor kl_div_with_logits(Operand logits, Operand target, const LossOptions& options = {});
Tensor bce_with_logits(Operand logits, Operand target, const BceWithLogitsOptions& options = {});
// From probabilities; logarithms are kept above -100, as in PyTorch.
Tensor bce(Operand probability, Operand target, const BceOptions& options = {});

// A mean loss as sum / weight: the two values whose quotient it is. Any other scalar is its own sum
// with weight 1.
struct LossParts {
  Tensor sum, weight;
};
LossParts loss_parts(const Tensor& loss);

}  // namespace pantala
