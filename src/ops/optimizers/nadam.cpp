// NAdam: Adam with Nesterov momentum, which grows with the step.
#include "ops/optimizers/define.h"

namespace pantala::ops {

namespace {
struct NadamUpdate : UpdateOp {
  using Attrs = DecayAttrs;
  static constexpr OpInfo info{"nadam_update",
                               "(weight, gradient, m, v, lr, beta1, beta2, eps, weight_decay, "
                               "correction2, gradient_gain, momentum_gain) -> (weight, m, v)",
                               "One step of NAdam: Adam with Nesterov momentum; the gains come "
                               "from the schedule of the momentum."};
  static void infer(InferContext& c, Attrs&) { infer_update<NadamUpdate>(c); }
  static std::vector<Tensor> expand(const ExpandContext& c, const Attrs& a) {
    const UpdateInputs in = inputs_of<NadamUpdate>(c);
    const Tensor g = in.decayed_gradient(a.decoupled);
    const Tensor m = in.mix("beta1", in["m"], g), v = in.mix("beta2", in["v"], g * g);
    const Tensor denominator = sqrt(v / in.rounded("correction2")) + in.rounded("eps");
    const Tensor along_gradient = in.round(in["lr"] * in["gradient_gain"]) * (g / denominator);
    const Tensor along_momentum = in.round(in["lr"] * in["momentum_gain"]) * (m / denominator);
    return {in.decayed_weight(a.decoupled) - along_gradient - along_momentum, m, v};
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> all;
    for (const bool decoupled : {false, true}) add_samples<NadamUpdate>(all, {decoupled});
    return all;
  }
};
}  // namespace

template <>
struct Declaration<optim::NadamOptions> {
  using Options = optim::NadamOptions;
  using Update = NadamUpdate;
  static constexpr OptimizerInfo info{"nadam", "Adam with Nesterov momentum."};
  static void fields(Fields& f, Options& o) {
    adam_fields(f, o);
    f("momentum_decay", o.momentum_decay, kNotNegative, "how fast the momentum grows to beta1");
    f("decoupled_weight_decay", o.decoupled_weight_decay,
      "weight decay acts on the weight, not on the gradient");
  }
  static Update::Attrs variant(const Options& o) { return {o.decoupled_weight_decay}; }
  // mu_t = beta1 (1 - 0.96^(t momentum_decay) / 2). The product of all so far is a state, in f64
  // (PyTorch keeps it in f32 whatever the weights are, which shows in the ninth digit).
  static HostScalars shared(const StepScalars& s, const KeepState& keep) {
    const auto mu = [&](const Tensor& t) {
      return s["beta1"] * (1.0 - 0.5 * pow(0.96, t * s["momentum_decay"]));
    };
    const Tensor now = mu(s.t), next = mu(s.t + 1.0);
    const Tensor product =
        keep("mu_product", init::ones(), [&](const Tensor& old) { return old * now; });
    return {{"gradient_gain", (1.0 - now) / (1.0 - product)},
            {"momentum_gain", next / (1.0 - product * next)}};
  }
  static HostScalars scalars(const StepScalars& s, const Options&) {
    return {{"correction2", s.correction("beta2")}};
  }
};
template const OptimizerDef& declared<optim::NadamOptions>();

}  // namespace pantala::ops

namespace pantala {

optim::Optimizer optim::nadam(double lr, const NadamOptions& options) {
  return ops::make_optimizer(lr, options);
}

UpdateResult nadam_update(Operand weight, Operand gradient, const UpdateStates& states,
                          const UpdateScalars& scalars, const DecayFlags& f) {
  return ops::make_update<ops::NadamUpdate>(weight, gradient, states, scalars, {f.decoupled});
}

}  // namespace pantala
