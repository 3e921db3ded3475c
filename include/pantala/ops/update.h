// Optimizer updates: one op per parameter and step. Hyper-parameters are f64 scalars of the graph;
// what depends on them alone (bias corrections) is computed in f64 outside and handed in, too. See
// optim.h for the optimizers that use them.
//
// `states` are tensors of the weight's type, `scalars` are f64 values without axes, both in the
// order given beside each function. The results are the new weight and the new states, in the same
// order. Formulas are PyTorch's; Lion and LAMB are their papers'.
#pragma once

#include <vector>

#include "pantala/tensor.h"

namespace pantala {

struct UpdateResult {
  Tensor weight;
  std::vector<Tensor> states;
};
using UpdateStates = std::vector<Tensor>;
using UpdateScalars = std::vector<Tensor>;

struct SgdUpdateFlags {
  bool momentum = false, nesterov = false;
};
// Scalars lr, weight_decay. With momentum: state buffer, further scalars momentum, gain (1 -
// dampening; 1 in the first step).
UpdateResult sgd_update(Operand weight, Operand gradient, const UpdateStates& states,
                        const UpdateScalars& scalars, const SgdUpdateFlags& flags = {});

struct AdamUpdateFlags {
  bool decoupled = false, amsgrad = false;
};
// States m, v and, with amsgrad, max_v. Scalars lr, beta1, beta2, eps, weight_decay, correction1 =
// 1 - beta1^t, correction2 = 1 - beta2^t. Decoupled weight decay makes it AdamW.
UpdateResult adam_update(Operand weight, Operand gradient, const UpdateStates& states,
                         const UpdateScalars& scalars, const AdamUpdateFlags& flags = {});

struct RmspropUpdateFlags {
  bool centered = false, momentum = false;
};
// States v, average if centered, buffer with momentum. Scalars lr, alpha, eps, weight_decay and,
// with momentum, momentum.
UpdateResult rmsprop_update(Operand weight, Operand gradient, const UpdateStates& states,
                            const UpdateScalars& scalars, const RmspropUpdateFlags& flags = {});

// State sum. Scalars lr (already decayed), eps, weight_decay.
UpdateResult adagrad_update(Operand weight, Operand gradient, const UpdateStates& states,
                            const UpdateScalars& scalars);
// States v, delta. Scalars lr, rho, eps, weight_decay.
UpdateResult adadelta_update(Operand weight, Operand gradient, const UpdateStates& states,
                             const UpdateScalars& scalars);

struct DecayFlags {
  bool decoupled = false;
};
// States m, v. Scalars lr, beta1, beta2, eps, weight_decay, correction2, gradient_gain = (1 - mu_t)
// / (1 - prod mu), momentum_gain = mu_t+1 / (1 - prod mu * mu_t+1).
UpdateResult nadam_update(Operand weight, Operand gradient, const UpdateStates& states,
                          const UpdateScalars& scalars, const DecayFlags& flags = {});
// States m, v. Scalars lr, beta1, beta2, eps, weight_decay, correction1, correction2,
// rectification; not above 0: the variance is not yet tractable and the step is not adaptive.
UpdateResult radam_update(Operand weight, Operand gradient, const UpdateStates& states,
                          const UpdateScalars& scalars, const DecayFlags& flags = {});
// States m, u. Scalars lr, beta1, beta2, eps, weight_decay, correction1.
UpdateResult adamax_update(Operand weight, Operand gradient, const UpdateStates& states,
                           const UpdateScalars& scalars);
// State m. Scalars lr, beta1, beta2, weight_decay (decoupled).
UpdateResult lion_update(Operand weight, Operand gradient, const UpdateStates& states,
                         const UpdateScalars& scalars);
// States m, v. Scalars lr, beta1, beta2, eps, weight_decay, correction1, correction2. The step is
// scaled by |weight| / |step|, or by 1 if either is 0.
UpdateResult lamb_update(Operand weight, Operand gradient, const UpdateStates& states,
                         const UpdateScalars& scalars);

}  // namespace pantala
