// LAMB: Adam's step, scaled for each parameter to the norm of the weight.
#include "ops/optimizers/define.h"

namespace pantala::ops {

namespace {
struct LambUpdate : UpdateOp {
  static constexpr OpInfo info{"lamb_update",
                               "(weight, gradient, m, v, lr, beta1, beta2, eps, weight_decay, "
                               "correction1, correction2) -> (weight, m, v)",
                               "One step of LAMB: Adam's step with weight decay, scaled to the "
                               "norm of the weight; by 1 if either norm is 0."};
  static void infer(InferContext& c) { infer_update<LambUpdate>(c); }
  static std::vector<Tensor> expand(const ExpandContext& c) {
    const UpdateInputs in = inputs_of<LambUpdate>(c);
    const Tensor &w = in.weight(), &g = in.gradient();
    const Tensor m = in.mix("beta1", in["m"], g), v = in.mix("beta2", in["v"], g * g);
    const Tensor ratio =
        (m / in.rounded("correction1")) / (sqrt(v / in.rounded("correction2")) + in.rounded("eps"));
    const Tensor step = ratio + in.rounded("weight_decay") * w;
    const Tensor of_weight = sum(w * w), of_step = sum(step * step);
    const Tensor both = logical_and(gt(of_weight, 0.0), gt(of_step, 0.0));
    const Tensor trust = sqrt(where(both, of_weight, 1.0) / where(both, of_step, 1.0));
    return {w - in.rounded("lr") * trust * step, m, v};
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> all;
    add_samples<LambUpdate>(all);
    return all;
  }
};
}  // namespace

template <>
struct Declaration<optim::LambOptions> {
  using Options = optim::LambOptions;
  using Update = LambUpdate;
  static constexpr OptimizerInfo info{"lamb", "Adam's step, scaled to the norm of each weight."};
  static void fields(Fields& f, Options& o) { adam_fields(f, o); }
  static HostScalars scalars(const StepScalars& s, const Options&) {
    return {{"correction1", s.correction("beta1")}, {"correction2", s.correction("beta2")}};
  }
};
template const OptimizerDef& declared<optim::LambOptions>();

}  // namespace pantala::ops

namespace pantala {

optim::Optimizer optim::lamb(double lr, const LambOptions& options) {
  return ops::make_optimizer(lr, options);
}

UpdateResult lamb_update(Operand weight, Operand gradient, const UpdateStates& states,
                         const UpdateScalars& scalars) {
  return ops::make_update<ops::LambUpdate>(weight, gradient, states, scalars);
}

}  // namespace pantala
