// RAdam: Adam whose first steps, while the variance of the step size is not tractable, are plain
// momentum.
#include "ops/optimizers/define.h"

namespace pantala::ops {

namespace {
struct RadamUpdate : UpdateOp {
  using Attrs = DecayAttrs;
  static constexpr OpInfo info{"radam_update",
                               "(weight, gradient, m, v, lr, beta1, beta2, eps, weight_decay, "
                               "correction1, correction2, rectification) -> (weight, m, v)",
                               "One step of RAdam: Adam with a rectified variance; plain momentum "
                               "while rectification is not above 0."};
  static void infer(InferContext& c, Attrs&) { infer_update<RadamUpdate>(c); }
  static std::vector<Tensor> expand(const ExpandContext& c, const Attrs& a) {
    const UpdateInputs in = inputs_of<RadamUpdate>(c);
    const Tensor g = in.decayed_gradient(a.decoupled);
    const Tensor m = in.mix("beta1", in["m"], g), v = in.mix("beta2", in["v"], g * g);
    const Tensor adaptive =
        in.round(sqrt(in["correction2"]) * in["rectification"]) / (sqrt(v) + in.rounded("eps"));
    const Tensor scale = where(gt(in["rectification"], 0.0), adaptive, 1.0);
    return {in.decayed_weight(a.decoupled) - in.round(in["lr"] / in["correction1"]) * (m * scale),
            m, v};
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> all;
    add_samples<RadamUpdate>(all, {false});
    add_samples<RadamUpdate>(all, {true}, {{"rectification", -0.7, -0.3}});
    return all;
  }
};

// 0 while the variance is not tractable.
Tensor rectification(const StepScalars& s) {
  const Tensor& beta2 = s["beta2"];
  const Tensor longest = 2.0 / (1.0 - beta2) - 1.0;
  const Tensor length = longest - 2.0 * s.t * pow(beta2, s.t) / s.correction("beta2");
  const Tensor squared =
      (length - 4.0) * (length - 2.0) * longest / ((longest - 4.0) * (longest - 2.0) * length);
  return where(gt(length, 5.0), sqrt(maximum(squared, 0.0)), 0.0);
}
}  // namespace

template <>
struct Declaration<optim::RadamOptions> {
  using Options = optim::RadamOptions;
  using Update = RadamUpdate;
  static constexpr OptimizerInfo info{"radam", "Adam with a rectified variance."};
  static void fields(Fields& f, Options& o) {
    adam_fields(f, o);
    f("decoupled_weight_decay", o.decoupled_weight_decay,
      "weight decay acts on the weight, not on the gradient");
  }
  static Update::Attrs variant(const Options& o) { return {o.decoupled_weight_decay}; }
  static HostScalars scalars(const StepScalars& s, const Options&) {
    return {{"correction1", s.correction("beta1")},
            {"correction2", s.correction("beta2")},
            {"rectification", rectification(s)}};
  }
};
template const OptimizerDef& declared<optim::RadamOptions>();

}  // namespace pantala::ops

namespace pantala {

optim::Optimizer optim::radam(double lr, const RadamOptions& options) {
  return ops::make_optimizer(lr, options);
}

UpdateResult radam_update(Operand weight, Operand gradient, const UpdateStates& states,
                          const UpdateScalars& scalars, const DecayFlags& f) {
  return ops::make_update<ops::RadamUpdate>(weight, gradient, states, scalars, {f.decoupled});
}

}  // namespace pantala
