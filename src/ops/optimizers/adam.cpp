// Adam, and AdamW, which is the same with decoupled weight decay.
#include "ops/optimizers/define.h"

namespace pantala::ops {

namespace {
struct AdamUpdate : UpdateOp {
  struct Attrs {
    bool decoupled = false, amsgrad = false;
    static void fields(auto&& f, auto& a) {
      f("decoupled", a.decoupled, "weight decay acts on the weight, not on the gradient: AdamW");
      f("amsgrad", a.amsgrad, "divide by the largest second moment so far");
    }
  };
  static constexpr OpInfo info{
      "adam_update",
      "(weight, gradient, m, v, lr, beta1, beta2, eps, weight_decay, correction1, correction2, "
      "max_v?) -> (weight, m, v, max_v?)",
      "One step of Adam; correction1 is 1 - beta1^t, correction2 is 1 - beta2^t."};
  static bool has(std::string_view, const Attrs& a) { return a.amsgrad; }
  static void infer(InferContext& c, Attrs& a) { infer_update<AdamUpdate>(c, a); }
  static std::vector<Tensor> expand(const ExpandContext& c, const Attrs& a) {
    const UpdateInputs in = inputs_of<AdamUpdate>(c, a);
    const Tensor g = in.decayed_gradient(a.decoupled);
    const Tensor m = in.mix("beta1", in["m"], g), v = in.mix("beta2", in["v"], g * g);
    const Tensor top = a.amsgrad ? maximum(in["max_v"], v) : v;
    const Tensor denominator = sqrt(top) / in.round(sqrt(in["correction2"])) + in.rounded("eps");
    std::vector<Tensor> results{
        in.decayed_weight(a.decoupled) - in.round(in["lr"] / in["correction1"]) * (m / denominator),
        m, v};
    if (a.amsgrad) results.push_back(top);
    return results;
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> all;
    for (const bool decoupled : {false, true}) add_samples<AdamUpdate>(all, {decoupled, false});
    // The old maximum well above the new second moment, then well below.
    add_samples<AdamUpdate>(all, {false, true}, {{"max_v", 2, 3}});
    add_samples<AdamUpdate>(all, {true, true}, {{"max_v", 0.01, 0.05}});
    return all;
  }
};

// What the two have in common.
template <class Opts>
struct AdamDeclaration {
  using Options = Opts;
  using Update = AdamUpdate;
  static void fields(Fields& f, Options& o) {
    adam_fields(f, o);
    f("amsgrad", o.amsgrad, "divide by the largest second moment so far");
  }
  static HostScalars scalars(const StepScalars& s, const Options&) {
    return {{"correction1", s.correction("beta1")}, {"correction2", s.correction("beta2")}};
  }
};
}  // namespace

template <>
struct Declaration<optim::AdamOptions> : AdamDeclaration<optim::AdamOptions> {
  static constexpr OptimizerInfo info{"adam", "Steps by the moments of the gradients."};
  static AdamUpdate::Attrs variant(const Options& o) {
    return {.decoupled = false, .amsgrad = o.amsgrad};
  }
};
template const OptimizerDef& declared<optim::AdamOptions>();

template <>
struct Declaration<optim::AdamWOptions> : AdamDeclaration<optim::AdamWOptions> {
  static constexpr OptimizerInfo info{"adamw", "Adam with decoupled weight decay."};
  static AdamUpdate::Attrs variant(const Options& o) {
    return {.decoupled = true, .amsgrad = o.amsgrad};
  }
};
template const OptimizerDef& declared<optim::AdamWOptions>();

}  // namespace pantala::ops

namespace pantala {

optim::Optimizer optim::adam(double lr, const AdamOptions& options) {
  return ops::make_optimizer(lr, options);
}
optim::Optimizer optim::adamw(double lr, const AdamWOptions& options) {
  return ops::make_optimizer(lr, options);
}

UpdateResult adam_update(Operand weight, Operand gradient, const UpdateStates& states,
                         const UpdateScalars& scalars, const AdamUpdateFlags& f) {
  return ops::make_update<ops::AdamUpdate>(weight, gradient, states, scalars,
                                           {f.decoupled, f.amsgrad});
}

}  // namespace pantala
