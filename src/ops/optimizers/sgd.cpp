// Stochastic gradient descent, with momentum and Nesterov's look ahead.
#include <fmt/format.h>

#include "base/text.h"
#include "ops/optimizers/define.h"
#include "pantala/error.h"

namespace pantala::ops {

namespace {
struct SgdUpdate : UpdateOp {
  struct Attrs {
    bool momentum = false, nesterov = false;
    static void fields(auto&& f, auto& a) {
      f("momentum", a.momentum, "keep a buffer of past gradients");
      f("nesterov", a.nesterov, "look ahead along the buffer");
    }
  };
  static constexpr OpInfo info{
      "sgd_update",
      "(weight, gradient, lr, weight_decay, momentum?, gain?, buffer?) -> (weight, buffer?)",
      "One step of SGD; gain is 1 - dampening, and 1 in the first step."};
  static bool has(std::string_view, const Attrs& a) { return a.momentum; }
  static void infer(InferContext& c, Attrs& a) {
    if (a.nesterov && !a.momentum) c.fail("nesterov needs momentum");
    infer_update<SgdUpdate>(c, a);
  }
  static std::vector<Tensor> expand(const ExpandContext& c, const Attrs& a) {
    const UpdateInputs in = inputs_of<SgdUpdate>(c, a);
    const Tensor g = in.decayed_gradient();
    if (!a.momentum) return {in.weight() - in.rounded("lr") * g};
    const Tensor buffer = in.rounded("momentum") * in["buffer"] + in.rounded("gain") * g;
    const Tensor direction = a.nesterov ? g + in.rounded("momentum") * buffer : buffer;
    return {in.weight() - in.rounded("lr") * direction, buffer};
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> all;
    for (const Attrs& a : {Attrs{}, Attrs{true, false}, Attrs{true, true}})
      add_samples<SgdUpdate>(all, a);
    return all;
  }
};
}  // namespace

template <>
struct Declaration<optim::SgdOptions> {
  using Options = optim::SgdOptions;
  using Update = SgdUpdate;
  static constexpr OptimizerInfo info{"sgd", "Stochastic gradient descent."};
  static void fields(Fields& f, Options& o) {
    const Role with_buffer = o.momentum != 0 ? Role::scalar : Role::unused;
    f("momentum", o.momentum, kNotNegative, "how much of the past gradients is kept; 0: none",
      with_buffer);
    f("dampening", o.dampening, kFinite, "how much of a gradient stays out of what is kept",
      with_buffer);
    weight_decay_field(f, o.weight_decay);
    f("nesterov", o.nesterov, "look ahead along what is kept");
  }
  static Update::Attrs variant(const Options& o) {
    return {.momentum = o.momentum != 0, .nesterov = o.nesterov};
  }
  static void check(const Options& o) {
    if (o.nesterov && (o.momentum == 0 || o.dampening != 0))
      throw TypeError(fmt::format(
          "sgd: nesterov needs momentum and no dampening, got momentum {} and dampening {}",
          exact(o.momentum), exact(o.dampening)));
  }
  // The first step has no past to be damped against.
  static HostScalars scalars(const StepScalars& s, const Options& o) {
    if (o.momentum == 0) return {};
    return {{"gain", where(s.is_first, 1.0, 1.0 - s["dampening"])}};
  }
};
template const OptimizerDef& declared<optim::SgdOptions>();

}  // namespace pantala::ops

namespace pantala {

optim::Optimizer optim::sgd(double lr, const SgdOptions& options) {
  return ops::make_optimizer(lr, options);
}

UpdateResult sgd_update(Operand weight, Operand gradient, const UpdateStates& states,
                        const UpdateScalars& scalars, const SgdUpdateFlags& f) {
  return ops::make_update<ops::SgdUpdate>(weight, gradient, states, scalars,
                                          {f.momentum, f.nesterov});
}

}  // namespace pantala
