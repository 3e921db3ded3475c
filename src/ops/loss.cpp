// Losses, element by element. All losses are written with other ops as soon as they are built. A
// mean is always div(sum, weight) with both values in the graph: loss_parts() finds them there, and
// accumulation over micro-batches adds them up separately.
#include <fmt/format.h>

#include <cmath>

#include "ops/arithmetic.h"
#include "ops/loss_common.h"
#include "ops/reduce.h"

namespace pantala::ops {
namespace {

using Family = LossFamily;

// --- any numbers

// Prediction and target broadcast against each other; weights broadcast to their common shape but
// do not widen it.
void infer_elements(InferContext& c, Reduction reduction) {
  c.require_float(0);
  for (int i = 1; i < c.count(); ++i) c.require_same_dtype(0, i);
  Shape common, wider;
  if (!broadcast_shapes(c.shape(0), c.shape(1), common))
    c.fail("shapes do not broadcast: " + c.describe_inputs());
  for (int i = 2; i < c.count(); ++i)
    if (!broadcast_shapes(common, c.shape(i), wider) || !(wider == common))
      c.fail(fmt::format("{} {} does not broadcast to the elements {}", c.name_of(i), c.in(i).str(),
                         common.str()));
  c.result(reduced_type(c.in(0).dtype, common, reduction));
}

Tensor reduced_elements(const Tensor& x, Reduction reduction) {
  return reduced(x, reduction, x.numel());
}

// Pairs of shapes, the second broadcast or not; the ranges keep clear of prediction == target.
template <class Attrs>
std::vector<Sample> element_samples(Range prediction, Range target,
                                    const std::vector<Attrs>& attrs) {
  std::vector<Sample> all;
  for (const Attrs& a : attrs)
    for (const auto& [p, t] : {std::pair<Shape, Shape>{{2, 3}, {2, 3}},
                               {{}, {}},
                               {{3, 3}, {3}},
                               {{2, 1, 5}, {3, 1}},
                               {{1}, {4, 1}}})
      all.push_back(sample(
          {floats(p, prediction.low, prediction.high), floats(t, target.low, target.high)}, a));
  return all;
}
std::vector<LossAttrs> all_reductions() {
  return {{Reduction::mean}, {Reduction::sum}, {Reduction::none}};
}

struct MseLoss : Family {
  using Attrs = LossAttrs;
  static constexpr OpInfo info{"mse_loss", "(prediction, target) -> loss",
                               "The mean square of prediction - target."};
  static constexpr bool kSugar = true;
  static void infer(InferContext& c, Attrs& a) { infer_elements(c, a.reduction); }
  static Tensor expand(const ExpandContext& c, const Attrs& a) {
    return reduced_elements(square(c.in(0) - c.in(1)), a.reduction);
  }
  static std::vector<Sample> samples() {
    return element_samples({-1, 1}, {-1, 1}, all_reductions());
  }
};

struct RmseLoss : Family {
  static constexpr OpInfo info{
      "rmse_loss", "(prediction, target) -> loss",
      "The root of the mean square of prediction - target; the gradient at zero error is 0."};
  static constexpr bool kSugar = true;
  static void infer(InferContext& c) { infer_elements(c, Reduction::mean); }
  // The root is taken of 1 where the error is 0: its infinite slope never meets the 0 of the side
  // that is not chosen.
  static Tensor expand(const ExpandContext& c) {
    const Tensor mse = mse_loss(c.in(0), c.in(1)), exact = eq(mse, 0.0);
    return where(exact, 0.0, sqrt(where(exact, 1.0, mse)));
  }
  static std::vector<Sample> samples() {
    return element_samples({1, 2}, {-1, 0}, std::vector<NoAttrs>{{}});
  }
};

struct L1Loss : Family {
  using Attrs = LossAttrs;
  static constexpr OpInfo info{
      "l1_loss", "(prediction, target) -> loss",
      "The mean magnitude of prediction - target; the gradient at zero error is 0."};
  static constexpr bool kSugar = true;
  static void infer(InferContext& c, Attrs& a) { infer_elements(c, a.reduction); }
  static Tensor expand(const ExpandContext& c, const Attrs& a) {
    return reduced_elements(abs(c.in(0) - c.in(1)), a.reduction);
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> all = element_samples({1, 2}, {-1, 0.5}, all_reductions()),
                        below = element_samples({-1, 0.5}, {1, 2}, all_reductions());
    all.insert(all.end(), below.begin(), below.end());
    return all;
  }
};

struct HuberAttrs {
  double delta = 1;
  Reduction reduction = Reduction::mean;
  static void fields(auto&& f, auto& a) {
    f("delta", a.delta, "where the square ends and the line begins");
    reduction_field(f, a);
  }
};

// A square up to delta and a line beyond. With m, the error kept within +-delta, both are m (e -
// m/2): no branch is computed that is not taken, and the second derivative at zero error is that of
// the square, where the magnitude has none.
Tensor huber_elements(const Tensor& error, double delta, double scale) {
  const Tensor m = clamp(error, -delta, delta);
  return (scale == 1 ? m : m / scale) * (error - m * 0.5);
}

struct HuberLoss : Family {
  using Attrs = HuberAttrs;
  static constexpr OpInfo info{
      "huber_loss", "(prediction, target) -> loss",
      "Half the square of the error below delta, delta * (|error| - delta / 2) from there on."};
  static constexpr bool kSugar = true;
  static void infer(InferContext& c, Attrs& a) {
    if (!(a.delta > 0 && std::isfinite(a.delta)))
      c.fail(fmt::format("delta must be positive and finite, got {}", a.delta));
    infer_elements(c, a.reduction);
  }
  static Tensor expand(const ExpandContext& c, const Attrs& a) {
    return reduced_elements(huber_elements(c.in(0) - c.in(1), a.delta, 1), a.reduction);
  }
  static std::vector<Sample> samples() {
    return element_samples<Attrs>(
        {-2, 2}, {-2, 2}, {{0.7, Reduction::mean}, {1, Reduction::none}, {0.5, Reduction::sum}});
  }
};

struct SmoothL1Loss : Family {
  using Attrs = HuberAttrs;
  static constexpr OpInfo info{"smooth_l1_loss", "(prediction, target) -> loss",
                               "huber_loss / delta; with delta 0 it is l1_loss."};
  static constexpr bool kSugar = true;
  static void infer(InferContext& c, Attrs& a) {
    if (!(a.delta >= 0 && std::isfinite(a.delta)))
      c.fail(fmt::format("delta must be finite and not negative, got {}", a.delta));
    infer_elements(c, a.reduction);
  }
  static Tensor expand(const ExpandContext& c, const Attrs& a) {
    const Tensor error = c.in(0) - c.in(1);
    return reduced_elements(a.delta == 0 ? abs(error) : huber_elements(error, a.delta, a.delta),
                            a.reduction);
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> all = element_samples<Attrs>(
        {-2, 2}, {-2, 2}, {{0.7, Reduction::mean}, {1, Reduction::none}, {0.5, Reduction::sum}});
    all.push_back(sample({floats({2, 3}, 1, 2), floats({3}, -1, 0)}, Attrs{0, Reduction::mean}));
    return all;
  }
};

// --- binary classes

// A weight of 1 for all stands in for "none" where a later optional input is given.
bool is_one(const Tensor& x) {
  return ir::splat_value(x.graph()->node(x.id().node)) == std::optional(1.0);
}
Tensor weighted(const Tensor& elements, const ExpandContext& c) {
  return c.has(2) && !is_one(c.in(2)) ? elements * c.in(2) : elements;
}

struct BceWithLogits : Family {
  using Attrs = LossAttrs;
  static constexpr OpInfo info{
      "bce_with_logits", "(logits, target, weight?, pos_weight?) -> loss",
      "Binary cross entropy of sigmoid(logits), the positive term times pos_weight, each element "
      "times weight; the mean is over all elements."};
  static constexpr bool kSugar = true;
  static void infer(InferContext& c, Attrs& a) { infer_elements(c, a.reduction); }
  // -log(sigmoid(x)) is softplus(-x), -log(1 - sigmoid(x)) is softplus(x): neither overflows, and
  // the small one of the two keeps its digits.
  static Tensor expand(const ExpandContext& c, const Attrs& a) {
    const Tensor &x = c.in(0), &t = c.in(1);
    const Tensor positive = t * softplus(-x), negative = (1.0 - t) * softplus(x);
    return reduced_elements(weighted((c.has(3) ? positive * c.in(3) : positive) + negative, c),
                            a.reduction);
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> all = element_samples({-3, 3}, {0.1, 0.9}, all_reductions());
    all.push_back(
        sample({floats({4, 3}, -3, 3), floats({4, 3}, 0, 1), floats({3}, 0.5, 2)}, Attrs{}));
    all.push_back(sample(
        {floats({4, 3}, -3, 3), floats({4, 3}, 0, 1), floats({4, 1}, 0.5, 2), floats({3}, 0.5, 4)},
        Attrs{Reduction::sum}));
    return all;
  }
};

struct BceElements : Pointwise, Family {
  static constexpr OpInfo info{
      "bce_elements", "(probability, target) -> y",
      "Binary cross entropy of probabilities, element by element. Logarithms are kept above -100 "
      "and the gradient finite, as in PyTorch."};
  static constexpr auto body = [](auto p, auto t) {
    return -(t * maximum(log(p), -100.0) + (1.0 - t) * maximum(log1p(-p), -100.0));
  };
  static void grad(GradContext& g) {
    const Tensor &p = g.in(0), &t = g.in(1);
    g.give(0, [&] { return g.dy() * (p - t) / maximum(p * (1.0 - p), 1e-12); });
    g.give(1, [&] { return g.dy() * (maximum(log1p(-p), -100.0) - maximum(log(p), -100.0)); });
  }
  static std::vector<Sample> samples() { return pointwise_samples({{0.1, 0.9}, {0, 1}}); }
};

struct Bce : Family {
  using Attrs = LossAttrs;
  static constexpr OpInfo info{"bce", "(probability, target, weight?) -> loss",
                               "Binary cross entropy of probabilities; logarithms are kept above "
                               "-100. bce_with_logits is exact."};
  static constexpr bool kSugar = true;
  static void infer(InferContext& c, Attrs& a) { infer_elements(c, a.reduction); }
  static Tensor expand(const ExpandContext& c, const Attrs& a) {
    return reduced_elements(weighted(make<BceElements>({c.in(0), c.in(1)}), c), a.reduction);
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> all = element_samples({0.1, 0.9}, {0, 1}, all_reductions());
    all.push_back(
        sample({floats({4, 3}, 0.1, 0.9), floats({4, 3}, 0, 1), floats({4, 1}, 0.5, 2)}, Attrs{}));
    return all;
  }
};

}  // namespace

std::vector<const OpDef*> loss_ops() {
  std::vector<const OpDef*> all =
      family<MseLoss, RmseLoss, L1Loss, HuberLoss, SmoothL1Loss, BceWithLogits, BceElements, Bce>();
  for (const OpDef* op : class_loss_ops()) all.push_back(op);
  return all;
}

}  // namespace pantala::ops

namespace pantala {

using namespace ops;

Tensor mse_loss(Operand prediction, Operand target, const LossOptions& o) {
  return make<MseLoss>({prediction, target}, {o.reduction});
}
Tensor rmse_loss(Operand prediction, Operand target) {
  return make<RmseLoss>({prediction, target});
}
Tensor l1_loss(Operand prediction, Operand target, const LossOptions& o) {
  return make<L1Loss>({prediction, target}, {o.reduction});
}
Tensor huber_loss(Operand prediction, Operand target, const HuberOptions& o) {
  return make<HuberLoss>({prediction, target}, {o.delta, o.reduction});
}
Tensor smooth_l1_loss(Operand prediction, Operand target, const HuberOptions& o) {
  return make<SmoothL1Loss>({prediction, target}, {o.delta, o.reduction});
}

Tensor bce_with_logits(Operand logits, Operand target, const BceWithLogitsOptions& o) {
  std::vector<Operand> inputs = with_weight({logits, target}, o.weight);
  if (o.pos_weight && !o.weight) inputs.emplace_back(1.0);
  return make<BceWithLogits>(with_weight(inputs, o.pos_weight), {o.reduction});
}
Tensor bce(Operand probability, Operand target, const BceOptions& o) {
  return make<Bce>(with_weight({probability, target}, o.weight), {o.reduction});
}

LossParts loss_parts(const Tensor& loss) {
  if (loss.rank() != 0 || !is_float(loss.dtype()))
    throw TypeError("loss_parts: the loss must be a float scalar, got " + loss.type().str());
  ir::GraphData& graph = *loss.graph();
  const ir::Node& node = graph.node(loss.id().node);
  if (is<op::Div>(node)) return {graph.tensor(node.inputs[0]), graph.tensor(node.inputs[1])};
  if (is<op::Mean>(node)) {
    const Tensor x = graph.tensor(node.inputs[0]);
    return {sum(x), full_beside(loss, {}, static_cast<double>(x.numel()))};
  }
  return {loss, ones_like(loss)};
}

}  // namespace pantala
