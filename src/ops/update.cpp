// Optimizer updates: composites, one op for one parameter. An op lists its inputs in a layout:
// weight and gradient, then states and scalars; what only some variants have stands at the end.
// Arithmetic between scalars is done in f64 and rounded once, when a scalar meets a tensor: 1 -
// beta2 taken in f32 would be wrong in the fifth digit.
#include <fmt/format.h>

#include <algorithm>

#include "ops/define.h"

namespace pantala::ops {
namespace {

struct Family {
  static constexpr std::string_view kFamily = "update";
};

struct Slot {
  std::string_view name;
  bool scalar;
};
using Layout = std::vector<Slot>;  // what follows weight and gradient

Slot state(std::string_view name) { return {name, false}; }
Slot scalar(std::string_view name) { return {name, true}; }

Layout with(Layout layout, bool condition, const Layout& more) {
  if (condition) layout.insert(layout.end(), more.begin(), more.end());
  return layout;
}

void infer_update(InferContext& c, const Layout& layout) {
  c.require_float(0);
  if (c.in(1) != c.in(0))
    c.fail(fmt::format("gradient must be {} as the weight, got {}", c.in(0).str(), c.in(1).str()));
  const int count = 2 + static_cast<int>(layout.size());
  if (c.count() != count)
    c.fail(fmt::format("takes {} inputs with these attributes, got {}: {}", count, c.count(),
                       c.describe_inputs()));
  c.result(c.in(0));
  for (int i = 2; i < count; ++i) {
    const Slot& slot = layout[static_cast<std::size_t>(i - 2)];
    if (slot.scalar) {
      if (c.in(i) != Type{f64, {}})
        c.fail(fmt::format("{} must be a scalar f64[], got {}", slot.name, c.in(i).str()));
      continue;
    }
    if (c.in(i) != c.in(0))
      c.fail(fmt::format("{} must be {} as the weight, got {}", slot.name, c.in(0).str(),
                         c.in(i).str()));
    c.result(c.in(0));
  }
}

// The inputs of an expansion by name.
class Inputs {
 public:
  Inputs(const ExpandContext& c, Layout layout) : c_(c), layout_(std::move(layout)) {}
  const Tensor& weight() const { return c_.in(0); }
  const Tensor& gradient() const { return c_.in(1); }
  const Tensor& operator[](std::string_view name) const {
    const auto slot =
        std::find_if(layout_.begin(), layout_.end(), [&](const Slot& s) { return s.name == name; });
    return c_.in(2 + static_cast<int>(slot - layout_.begin()));
  }
  // An f64 value, rounded to the weight's dtype.
  Tensor round(const Tensor& value) const { return cast(value, weight().dtype()); }
  Tensor rounded(std::string_view name) const { return round((*this)[name]); }
  // rate * old + (1 - rate) * fresh.
  Tensor mix(std::string_view rate, const Tensor& old, const Tensor& fresh) const {
    return rounded(rate) * old + round(1.0 - (*this)[rate]) * fresh;
  }
  // The gradient of the loss with the L2 penalty; without it where the decay is decoupled.
  Tensor decayed_gradient(bool decoupled = false) const {
    return decoupled ? gradient() : gradient() + rounded("weight_decay") * weight();
  }
  // The weight that the step starts from.
  Tensor decayed_weight(bool decoupled) const {
    return decoupled ? weight() * round(1.0 - (*this)["lr"] * (*this)["weight_decay"]) : weight();
  }

 private:
  const ExpandContext& c_;
  Layout layout_;
};

// Ranges of sample values. Gradients are positive and all scalars lie in [0.3, 0.7), so that no
// sample is near a kink.
struct StateRange {
  std::string_view name;
  double low, high;
};

SampleInput sample_input(const Slot& slot, const Shape& shape,
                         const std::vector<StateRange>& ranges) {
  double low = slot.scalar ? 0.3 : 0.5, high = slot.scalar ? 0.7 : 1;
  for (const StateRange& range : ranges)
    if (range.name == slot.name) low = range.low, high = range.high;
  return slot.scalar ? SampleInput{{}, low, high, f64, false} : floats(shape, low, high);
}

template <class Attrs = NoAttrs>
void add_samples(std::vector<Sample>& all, const Layout& layout, const Attrs& attrs = {},
                 const std::vector<StateRange>& ranges = {}) {
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{3, 3}, Shape{2, 1, 5}, Shape{0, 4}}) {
    std::vector<SampleInput> inputs{floats(shape), floats(shape, 0.2, 1)};
    for (const Slot& slot : layout) inputs.push_back(sample_input(slot, shape, ranges));
    all.push_back(sample(std::move(inputs), attrs));
  }
}

// --- SGD

struct SgdUpdate : Family {
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
  static Layout layout(const Attrs& a) {
    return with({scalar("lr"), scalar("weight_decay")}, a.momentum,
                {scalar("momentum"), scalar("gain"), state("buffer")});
  }
  static void infer(InferContext& c, Attrs& a) {
    if (a.nesterov && !a.momentum) c.fail("nesterov needs momentum");
    infer_update(c, layout(a));
  }
  static std::vector<Tensor> expand(const ExpandContext& c, const Attrs& a) {
    const Inputs in(c, layout(a));
    const Tensor g = in.decayed_gradient();
    if (!a.momentum) return {in.weight() - in.rounded("lr") * g};
    const Tensor buffer = in.rounded("momentum") * in["buffer"] + in.rounded("gain") * g;
    const Tensor direction = a.nesterov ? g + in.rounded("momentum") * buffer : buffer;
    return {in.weight() - in.rounded("lr") * direction, buffer};
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> all;
    for (const Attrs& a : {Attrs{}, Attrs{true, false}, Attrs{true, true}})
      add_samples(all, layout(a), a);
    return all;
  }
};

// --- the Adam family

Layout adam_layout(const Layout& corrections) {
  return with({state("m"), state("v"), scalar("lr"), scalar("beta1"), scalar("beta2"),
               scalar("eps"), scalar("weight_decay")},
              true, corrections);
}

struct AdamUpdate : Family {
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
  static Layout layout(const Attrs& a) {
    return with(adam_layout({scalar("correction1"), scalar("correction2")}), a.amsgrad,
                {state("max_v")});
  }
  static void infer(InferContext& c, Attrs& a) { infer_update(c, layout(a)); }
  static std::vector<Tensor> expand(const ExpandContext& c, const Attrs& a) {
    const Inputs in(c, layout(a));
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
    for (const bool decoupled : {false, true})
      add_samples(all, layout({decoupled, false}), Attrs{decoupled, false});
    // The old maximum well above the new second moment, then well below.
    add_samples(all, layout({false, true}), Attrs{false, true}, {{"max_v", 2, 3}});
    add_samples(all, layout({true, true}), Attrs{true, true}, {{"max_v", 0.01, 0.05}});
    return all;
  }
};

struct DecayAttrs {
  bool decoupled = false;
  static void fields(auto&& f, auto& a) {
    f("decoupled", a.decoupled, "weight decay acts on the weight, not on the gradient");
  }
};

struct NadamUpdate : Family {
  using Attrs = DecayAttrs;
  static constexpr OpInfo info{"nadam_update",
                               "(weight, gradient, m, v, lr, beta1, beta2, eps, weight_decay, "
                               "correction2, gradient_gain, momentum_gain) -> (weight, m, v)",
                               "One step of NAdam: Adam with Nesterov momentum; the gains come "
                               "from the schedule of the momentum."};
  static Layout layout() {
    return adam_layout({scalar("correction2"), scalar("gradient_gain"), scalar("momentum_gain")});
  }
  static void infer(InferContext& c, Attrs&) { infer_update(c, layout()); }
  static std::vector<Tensor> expand(const ExpandContext& c, const Attrs& a) {
    const Inputs in(c, layout());
    const Tensor g = in.decayed_gradient(a.decoupled);
    const Tensor m = in.mix("beta1", in["m"], g), v = in.mix("beta2", in["v"], g * g);
    const Tensor denominator = sqrt(v / in.rounded("correction2")) + in.rounded("eps");
    const Tensor along_gradient = in.round(in["lr"] * in["gradient_gain"]) * (g / denominator);
    const Tensor along_momentum = in.round(in["lr"] * in["momentum_gain"]) * (m / denominator);
    return {in.decayed_weight(a.decoupled) - along_gradient - along_momentum, m, v};
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> all;
    for (const bool decoupled : {false, true}) add_samples(all, layout(), Attrs{decoupled});
    return all;
  }
};

struct RadamUpdate : Family {
  using Attrs = DecayAttrs;
  static constexpr OpInfo info{"radam_update",
                               "(weight, gradient, m, v, lr, beta1, beta2, eps, weight_decay, "
                               "correction1, correction2, rectification) -> (weight, m, v)",
                               "One step of RAdam: Adam with a rectified variance; plain momentum "
                               "while rectification is not above 0."};
  static Layout layout() {
    return adam_layout({scalar("correction1"), scalar("correction2"), scalar("rectification")});
  }
  static void infer(InferContext& c, Attrs&) { infer_update(c, layout()); }
  static std::vector<Tensor> expand(const ExpandContext& c, const Attrs& a) {
    const Inputs in(c, layout());
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
    add_samples(all, layout(), Attrs{false});
    add_samples(all, layout(), Attrs{true}, {{"rectification", -0.7, -0.3}});
    return all;
  }
};

struct AdamaxUpdate : Family {
  static constexpr OpInfo info{
      "adamax_update",
      "(weight, gradient, m, u, lr, beta1, beta2, eps, weight_decay, correction1) -> (weight, m, "
      "u)",
      "One step of Adamax: Adam with the largest magnitude in place of the second moment."};
  static Layout layout() {
    return {state("m"),      state("u"),    scalar("lr"),           scalar("beta1"),
            scalar("beta2"), scalar("eps"), scalar("weight_decay"), scalar("correction1")};
  }
  static void infer(InferContext& c) { infer_update(c, layout()); }
  static std::vector<Tensor> expand(const ExpandContext& c) {
    const Inputs in(c, layout());
    const Tensor g = in.decayed_gradient(), m = in.mix("beta1", in["m"], g);
    const Tensor u = maximum(in.rounded("beta2") * in["u"], abs(g) + in.rounded("eps"));
    return {in.weight() - in.round(in["lr"] / in["correction1"]) * (m / u), m, u};
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> all;
    // Decay is kept small: the gradient with its penalty must not change its sign, and stays below
    // the larger u and above the smaller.
    add_samples(all, layout(), NoAttrs{}, {{"u", 7, 9}, {"weight_decay", 0.01, 0.1}});
    add_samples(all, layout(), NoAttrs{}, {{"u", 0.01, 0.1}, {"weight_decay", 0.01, 0.1}});
    return all;
  }
};

struct LambUpdate : Family {
  static constexpr OpInfo info{"lamb_update",
                               "(weight, gradient, m, v, lr, beta1, beta2, eps, weight_decay, "
                               "correction1, correction2) -> (weight, m, v)",
                               "One step of LAMB: Adam's step with weight decay, scaled to the "
                               "norm of the weight; by 1 if either norm is 0."};
  static Layout layout() { return adam_layout({scalar("correction1"), scalar("correction2")}); }
  static void infer(InferContext& c) { infer_update(c, layout()); }
  static std::vector<Tensor> expand(const ExpandContext& c) {
    const Inputs in(c, layout());
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
    add_samples(all, layout());
    return all;
  }
};

struct LionUpdate : Family {
  static constexpr OpInfo info{
      "lion_update", "(weight, gradient, m, lr, beta1, beta2, weight_decay) -> (weight, m)",
      "One step of Lion: the sign of the mixed momentum and gradient, with decoupled weight "
      "decay."};
  static Layout layout() {
    return {state("m"), scalar("lr"), scalar("beta1"), scalar("beta2"), scalar("weight_decay")};
  }
  static void infer(InferContext& c) { infer_update(c, layout()); }
  static std::vector<Tensor> expand(const ExpandContext& c) {
    const Inputs in(c, layout());
    const Tensor direction =
        sign(in.mix("beta1", in["m"], in.gradient())) + in.rounded("weight_decay") * in.weight();
    return {in.weight() - in.rounded("lr") * direction, in.mix("beta2", in["m"], in.gradient())};
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> all;
    add_samples(all, layout());
    return all;
  }
};

// --- others with squared gradients

struct RmspropUpdate : Family {
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
  static Layout layout(const Attrs& a) {
    const Layout all = {state("v"), scalar("lr"), scalar("alpha"), scalar("eps"),
                        scalar("weight_decay")};
    return with(with(all, a.centered, {state("average")}), a.momentum,
                {scalar("momentum"), state("buffer")});
  }
  static void infer(InferContext& c, Attrs& a) { infer_update(c, layout(a)); }
  static std::vector<Tensor> expand(const ExpandContext& c, const Attrs& a) {
    const Inputs in(c, layout(a));
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
      add_samples(all, layout(a), a, {{"v", 2, 3}});
    return all;
  }
};

struct AdagradUpdate : Family {
  static constexpr OpInfo info{"adagrad_update",
                               "(weight, gradient, sum, lr, eps, weight_decay) -> (weight, sum)",
                               "One step of Adagrad; lr is already decayed."};
  static Layout layout() {
    return {state("sum"), scalar("lr"), scalar("eps"), scalar("weight_decay")};
  }
  static void infer(InferContext& c) { infer_update(c, layout()); }
  static std::vector<Tensor> expand(const ExpandContext& c) {
    const Inputs in(c, layout());
    const Tensor g = in.decayed_gradient(), total = in["sum"] + g * g;
    return {in.weight() - in.rounded("lr") * (g / (sqrt(total) + in.rounded("eps"))), total};
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> all;
    add_samples(all, layout());
    return all;
  }
};

struct AdadeltaUpdate : Family {
  static constexpr OpInfo info{
      "adadelta_update",
      "(weight, gradient, v, delta, lr, rho, eps, weight_decay) -> (weight, v, delta)",
      "One step of Adadelta."};
  static Layout layout() {
    return {state("v"),    state("delta"), scalar("lr"),
            scalar("rho"), scalar("eps"),  scalar("weight_decay")};
  }
  static void infer(InferContext& c) { infer_update(c, layout()); }
  static std::vector<Tensor> expand(const ExpandContext& c) {
    const Inputs in(c, layout());
    const Tensor g = in.decayed_gradient(), v = in.mix("rho", in["v"], g * g),
                 eps = in.rounded("eps");
    const Tensor step = sqrt(in["delta"] + eps) / sqrt(v + eps) * g;
    return {in.weight() - in.rounded("lr") * step, v, in.mix("rho", in["delta"], step * step)};
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> all;
    add_samples(all, layout());
    return all;
  }
};

// Puts states and scalars into the places that the layout says.
template <class Op>
UpdateResult build(const Operand& weight, const Operand& gradient, const UpdateStates& states,
                   const UpdateScalars& scalars, const Layout& layout,
                   const attrs_t<Op>& attrs = {}) {
  const auto scalar_count = static_cast<std::size_t>(
      std::count_if(layout.begin(), layout.end(), [](const Slot& s) { return s.scalar; }));
  if (scalars.size() != scalar_count || states.size() != layout.size() - scalar_count)
    throw TypeError(fmt::format("{}: takes {} states and {} scalars, got {} and {}", Op::info.name,
                                layout.size() - scalar_count, scalar_count, states.size(),
                                scalars.size()));
  std::vector<Operand> inputs{weight, gradient};
  auto next_state = states.begin(), next_scalar = scalars.begin();
  for (const Slot& slot : layout)
    inputs.emplace_back(slot.scalar ? *next_scalar++ : *next_state++, weight.where());
  const std::vector<Tensor> results = make_all<Op>(inputs, attrs);
  return {results[0], {results.begin() + 1, results.end()}};
}

}  // namespace

std::vector<const OpDef*> update_ops() {
  return family<SgdUpdate, AdamUpdate, NadamUpdate, RadamUpdate, AdamaxUpdate, LambUpdate,
                LionUpdate, RmspropUpdate, AdagradUpdate, AdadeltaUpdate>();
}

}  // namespace pantala::ops

namespace pantala {

using namespace ops;

UpdateResult sgd_update(Operand w, Operand g, const UpdateStates& states,
                        const UpdateScalars& scalars, const SgdUpdateFlags& f) {
  const SgdUpdate::Attrs attrs{f.momentum, f.nesterov};
  return build<SgdUpdate>(w, g, states, scalars, SgdUpdate::layout(attrs), attrs);
}
UpdateResult adam_update(Operand w, Operand g, const UpdateStates& states,
                         const UpdateScalars& scalars, const AdamUpdateFlags& f) {
  const AdamUpdate::Attrs attrs{f.decoupled, f.amsgrad};
  return build<AdamUpdate>(w, g, states, scalars, AdamUpdate::layout(attrs), attrs);
}
UpdateResult rmsprop_update(Operand w, Operand g, const UpdateStates& states,
                            const UpdateScalars& scalars, const RmspropUpdateFlags& f) {
  const RmspropUpdate::Attrs attrs{f.centered, f.momentum};
  return build<RmspropUpdate>(w, g, states, scalars, RmspropUpdate::layout(attrs), attrs);
}
UpdateResult adagrad_update(Operand w, Operand g, const UpdateStates& states,
                            const UpdateScalars& scalars) {
  return build<AdagradUpdate>(w, g, states, scalars, AdagradUpdate::layout());
}
UpdateResult adadelta_update(Operand w, Operand g, const UpdateStates& states,
                             const UpdateScalars& scalars) {
  return build<AdadeltaUpdate>(w, g, states, scalars, AdadeltaUpdate::layout());
}
UpdateResult nadam_update(Operand w, Operand g, const UpdateStates& states,
                          const UpdateScalars& scalars, const DecayFlags& f) {
  return build<NadamUpdate>(w, g, states, scalars, NadamUpdate::layout(), {f.decoupled});
}
UpdateResult radam_update(Operand w, Operand g, const UpdateStates& states,
                          const UpdateScalars& scalars, const DecayFlags& f) {
  return build<RadamUpdate>(w, g, states, scalars, RadamUpdate::layout(), {f.decoupled});
}
UpdateResult adamax_update(Operand w, Operand g, const UpdateStates& states,
                           const UpdateScalars& scalars) {
  return build<AdamaxUpdate>(w, g, states, scalars, AdamaxUpdate::layout());
}
UpdateResult lion_update(Operand w, Operand g, const UpdateStates& states,
                         const UpdateScalars& scalars) {
  return build<LionUpdate>(w, g, states, scalars, LionUpdate::layout());
}
UpdateResult lamb_update(Operand w, Operand g, const UpdateStates& states,
                         const UpdateScalars& scalars) {
  return build<LambUpdate>(w, g, states, scalars, LambUpdate::layout());
}

}  // namespace pantala
