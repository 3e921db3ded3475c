// RMSprop: steps divided by the root of a running mean of squared gradients.
#include "ops/optimizers/define.h"

namespace pantala::ops {

namespace {
struct RmspropUpdate : UpdateOp {
  struct Attrs {
    bool centered = false, momentum = false;
    static void fields(auto&& f, auto& a) {
      f("centered", a.centered, "divide by the deviation from the mean gradient");
      f("momentum", a.momentum, "keep a buffer of past steps");
    }
  };
  static constexpr OpInfo info{"rmsprop_update",
                               "(weight, gradient, v, lr, alpha, eps, weight_decay, average?, "
                               "momentum?, buffer?) -> (weight, v, average?, buffer?)",
                               "One step of RMSprop."};
  static bool has(std::string_view name, const Attrs& a) {
    return name == "average" ? a.centered : a.momentum;
  }
  static void infer(InferContext& c, Attrs& a) { infer_update<RmspropUpdate>(c, a); }
  static std::vector<Tensor> expand(const ExpandContext& c, const Attrs& a) {
    const UpdateInputs in = inputs_of<RmspropUpdate>(c, a);
    const Tensor g = in.decayed_gradient(), v = in.mix("alpha", in["v"], g * g);
    std::vector<Tensor> results{{}, v};
    Tensor spread = v;
    if (a.centered) {
      const Tensor average = in.mix("alpha", in["average"], g);
      spread = v - average * average;
      results.push_back(average);
    }
    Tensor step = g / (sqrt(spread) + in.rounded("eps"));
    if (a.momentum) {
      step = in.rounded("momentum") * in["buffer"] + step;
      results.push_back(step);
    }
    results[0] = in.weight() - in.rounded("lr") * step;
    return results;
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> all;
    for (const Attrs& a : {Attrs{}, Attrs{true, false}, Attrs{false, true}, Attrs{true, true}})
      add_samples<RmspropUpdate>(all, a, {{"v", 2, 3}});
    return all;
  }
};
}  // namespace

template <>
struct Declaration<optim::RmspropOptions> {
  using Options = optim::RmspropOptions;
  using Update = RmspropUpdate;
  static constexpr OptimizerInfo info{"rmsprop",
                                      "Steps divided by the root mean square of the gradients."};
  static void fields(Fields& f, Options& o) {
    f("alpha", o.alpha, kUpToOne, "how much of the mean of squared gradients is kept");
    eps_field(f, o.eps);
    weight_decay_field(f, o.weight_decay);
    f("momentum", o.momentum, kNotNegative, "how much of the past steps is kept; 0: none",
      o.momentum != 0 ? Role::scalar : Role::unused);
    f("centered", o.centered, "divide by the deviation from the mean gradient");
  }
  static Update::Attrs variant(const Options& o) {
    return {.centered = o.centered, .momentum = o.momentum != 0};
  }
};
template const OptimizerDef& declared<optim::RmspropOptions>();

}  // namespace pantala::ops

namespace pantala {

optim::Optimizer optim::rmsprop(double lr, const RmspropOptions& options) {
  return ops::make_optimizer(lr, options);
}

UpdateResult rmsprop_update(Operand weight, Operand gradient, const UpdateStates& states,
                            const UpdateScalars& scalars, const RmspropUpdateFlags& f) {
  return ops::make_update<ops::RmspropUpdate>(weight, gradient, states, scalars,
                                              {f.centered, f.momentum});
}

}  // namespace pantala
