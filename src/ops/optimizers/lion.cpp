// Lion: the sign of momentum and gradient, with decoupled weight decay.
#include "ops/optimizers/define.h"

namespace pantala::ops {

namespace {
struct LionUpdate : UpdateOp {
  static constexpr OpInfo info{
      "lion_update", "(weight, gradient, m, lr, beta1, beta2, weight_decay) -> (weight, m)",
      "One step of Lion: the sign of the mixed momentum and gradient, with decoupled weight "
      "decay."};
  static void infer(InferContext& c) { infer_update<LionUpdate>(c); }
  static std::vector<Tensor> expand(const ExpandContext& c) {
    const UpdateInputs in = inputs_of<LionUpdate>(c);
    const Tensor direction =
        sign(in.mix("beta1", in["m"], in.gradient())) + in.rounded("weight_decay") * in.weight();
    return {in.weight() - in.rounded("lr") * direction, in.mix("beta2", in["m"], in.gradient())};
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> all;
    add_samples<LionUpdate>(all);
    return all;
  }
};
}  // namespace

template <>
struct Declaration<optim::LionOptions> {
  using Options = optim::LionOptions;
  using Update = LionUpdate;
  static constexpr OptimizerInfo info{"lion", "Steps of one size, by the sign of the momentum."};
  static void fields(Fields& f, Options& o) {
    f("beta1", o.beta1, kBelowOne, "how much of the momentum goes into a step");
    f("beta2", o.beta2, kBelowOne, "how much of the momentum is kept");
    weight_decay_field(f, o.weight_decay);
  }
};
template const OptimizerDef& declared<optim::LionOptions>();

}  // namespace pantala::ops

namespace pantala {

optim::Optimizer optim::lion(double lr, const LionOptions& options) {
  return ops::make_optimizer(lr, options);
}

UpdateResult lion_update(Operand weight, Operand gradient, const UpdateStates& states,
                         const UpdateScalars& scalars) {
  return ops::make_update<ops::LionUpdate>(weight, gradient, states, scalars);
}

}  // namespace pantala
