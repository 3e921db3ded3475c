// Adamax: Adam with the largest magnitude of the gradients in place of the second moment.
#include "ops/optimizers/define.h"

namespace pantala::ops {

namespace {
struct AdamaxUpdate : UpdateOp {
  static constexpr OpInfo info{
      "adamax_update",
      "(weight, gradient, m, u, lr, beta1, beta2, eps, weight_decay, correction1) -> (weight, m, "
      "u)",
      "One step of Adamax: Adam with the largest magnitude in place of the second moment."};
  static void infer(InferContext& c) { infer_update<AdamaxUpdate>(c); }
  static std::vector<Tensor> expand(const ExpandContext& c) {
    const UpdateInputs in = inputs_of<AdamaxUpdate>(c);
    const Tensor g = in.decayed_gradient(), m = in.mix("beta1", in["m"], g);
    const Tensor u = maximum(in.rounded("beta2") * in["u"], abs(g) + in.rounded("eps"));
    return {in.weight() - in.round(in["lr"] / in["correction1"]) * (m / u), m, u};
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> all;
    // Decay is kept small: the gradient with its penalty must not change its sign, and stays below
    // the larger u and above the smaller.
    add_samples<AdamaxUpdate>(all, {}, {{"u", 7, 9}, {"weight_decay", 0.01, 0.1}});
    add_samples<AdamaxUpdate>(all, {}, {{"u", 0.01, 0.1}, {"weight_decay", 0.01, 0.1}});
    return all;
  }
};
}  // namespace

template <>
struct Declaration<optim::AdamaxOptions> {
  using Options = optim::AdamaxOptions;
  using Update = AdamaxUpdate;
  static constexpr OptimizerInfo info{
      "adamax", "Adam with the largest magnitude in place of the second moment."};
  static void fields(Fields& f, Options& o) {
    f("beta1", o.beta1, kBelowOne, "how much of the mean of past gradients is kept");
    f("beta2", o.beta2, kBelowOne, "how much of the largest magnitude is kept");
    eps_field(f, o.eps);
    weight_decay_field(f, o.weight_decay);
  }
  static HostScalars scalars(const StepScalars& s, const Options&) {
    return {{"correction1", s.correction("beta1")}};
  }
};
template const OptimizerDef& declared<optim::AdamaxOptions>();

}  // namespace pantala::ops

namespace pantala {

optim::Optimizer optim::adamax(double lr, const AdamaxOptions& options) {
  return ops::make_optimizer(lr, options);
}

UpdateResult adamax_update(Operand weight, Operand gradient, const UpdateStates& states,
                           const UpdateScalars& scalars) {
  return ops::make_update<ops::AdamaxUpdate>(weight, gradient, states, scalars);
}

}  // namespace pantala
