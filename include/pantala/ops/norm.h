// Softmax and the normalisations.
#pragma once

#include <optional>

#include "pantala/tensor.h"

namespace pantala {

Tensor softmax(Operand x, std::int64_t axis = -1);
Tensor log_softmax(Operand x, std::int64_t axis = -1);

// Over the last axis.
struct NormOptions {
  double eps = 1e-5;
};
Tensor layer_norm(Operand x, const std::optional<Tensor>& weight = {},
                  const std::optional<Tensor>& bias = {}, const NormOptions& options = {});
Tensor rms_norm(Operand x, const std::optional<Tensor>& weight = {},
                const NormOptions& options = {});
// Channels are axis 1.
Tensor group_norm(Operand x, std::int64_t groups, const std::optional<Tensor>& weight = {},
                  const std::optional<Tensor>& bias = {}, const NormOptions& options = {});

struct BatchNormOptions {
  double momentum = 0.1, eps = 1e-5;
};
struct BatchNormResult {
  Tensor y, running_mean, running_var;
};
// Normalises with the statistics of the batch; also the running statistics after this batch (the
// variance unbiased, as in PyTorch).
BatchNormResult batch_norm_train(Operand x, Operand weight, Operand bias, Operand running_mean,
                                 Operand running_var, const BatchNormOptions& options = {});
Tensor batch_norm_eval(Operand x, Operand weight, Operand bias, Operand running_mean,
                       Operand running_var, const NormOptions& options = {});

}  // namespace pantala
