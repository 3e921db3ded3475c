// Adagrad: steps divided by the root of the sum of all squared gradients.
#include "ops/optimizers/define.h"

namespace pantala::ops {

namespace {
struct AdagradUpdate : UpdateOp {
  static constexpr OpInfo info{"adagrad_update",
                               "(weight, gradient, sum, lr, eps, weight_decay) -> (weight, sum)",
                               "One step of Adagrad; lr is already decayed."};
  static void infer(InferContext& c) { infer_update<AdagradUpdate>(c); }
  static std::vector<Tensor> expand(const ExpandContext& c) {
    const UpdateInputs in = inputs_of<AdagradUpdate>(c);
    const Tensor g = in.decayed_gradient(), total = in["sum"] + g * g;
    return {in.weight() - in.rounded("lr") * (g / (sqrt(total) + in.rounded("eps"))), total};
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> all;
    add_samples<AdagradUpdate>(all);
    return all;
  }
};
}  // namespace

template <>
struct Declaration<optim::AdagradOptions> {
  using Options = optim::AdagradOptions;
  using Update = AdagradUpdate;
  static constexpr OptimizerInfo info{"adagrad",
                                      "Steps divided by the root of the sum of squared gradients."};
  static void fields(Fields& f, Options& o) {
    f("lr_decay", o.lr_decay, kNotNegative, "the rate is divided by 1 + lr_decay * finished steps");
    weight_decay_field(f, o.weight_decay);
    f("initial_accumulator_value", o.initial_accumulator_value, kNotNegative,
      "what the sums begin with", Role::first_value);
    eps_field(f, o.eps);
  }
  static HostScalars scalars(const StepScalars& s, const Options&) {
    return {{"lr", s["lr"] / (1.0 + (s.t - 1.0) * s["lr_decay"])}};
  }
};
template const OptimizerDef& declared<optim::AdagradOptions>();

}  // namespace pantala::ops

namespace pantala {

optim::Optimizer optim::adagrad(double lr, const AdagradOptions& options) {
  return ops::make_optimizer(lr, options);
}

UpdateResult adagrad_update(Operand weight, Operand gradient, const UpdateStates& states,
                            const UpdateScalars& scalars) {
  return ops::make_update<ops::AdagradUpdate>(weight, gradient, states, scalars);
}

}  // namespace pantala
