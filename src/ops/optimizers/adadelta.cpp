// Adadelta: steps in the unit of the weights, from running means of squared gradients and steps.
#include "ops/optimizers/define.h"

namespace pantala::ops {

namespace {
struct AdadeltaUpdate : UpdateOp {
  static constexpr OpInfo info{
      "adadelta_update",
      "(weight, gradient, v, delta, lr, rho, eps, weight_decay) -> (weight, v, delta)",
      "One step of Adadelta."};
  static void infer(InferContext& c) { infer_update<AdadeltaUpdate>(c); }
  static std::vector<Tensor> expand(const ExpandContext& c) {
    const UpdateInputs in = inputs_of<AdadeltaUpdate>(c);
    const Tensor g = in.decayed_gradient(), v = in.mix("rho", in["v"], g * g),
                 eps = in.rounded("eps");
    const Tensor step = sqrt(in["delta"] + eps) / sqrt(v + eps) * g;
    return {in.weight() - in.rounded("lr") * step, v, in.mix("rho", in["delta"], step * step)};
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> all;
    add_samples<AdadeltaUpdate>(all);
    return all;
  }
};
}  // namespace

template <>
struct Declaration<optim::AdadeltaOptions> {
  using Options = optim::AdadeltaOptions;
  using Update = AdadeltaUpdate;
  static constexpr OptimizerInfo info{"adadelta", "Steps as large as the past ones were."};
  static void fields(Fields& f, Options& o) {
    f("rho", o.rho, kUpToOne, "how much of the means of squares is kept");
    eps_field(f, o.eps);
    weight_decay_field(f, o.weight_decay);
  }
};
template const OptimizerDef& declared<optim::AdadeltaOptions>();

}  // namespace pantala::ops

namespace pantala {

optim::Optimizer optim::adadelta(double lr, const AdadeltaOptions& options) {
  return ops::make_optimizer(lr, options);
}

UpdateResult adadelta_update(Operand weight, Operand gradient, const UpdateStates& states,
                             const UpdateScalars& scalars) {
  return ops::make_update<ops::AdadeltaUpdate>(weight, gradient, states, scalars);
}

}  // namespace pantala
