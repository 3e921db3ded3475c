// Losses of several classes. Their core for class numbers, softmax_cross_entropy and its gradient,
// stays a node, so that a target can give it one kernel; everything around it is written with other
// ops as soon as it is built.
#include <fmt/format.h>

#include "ops/loss_common.h"

namespace pantala::ops {
namespace {

using Family = LossFamily;

// --- classes by number

// Exact as a double, which constants are given in.
constexpr std::int64_t kLargestIgnoreIndex = std::int64_t{1} << 53;

int class_axis(const Shape& logits) { return logits.rank() == 1 ? 0 : 1; }

// Scores with classes on `axis`, and one class for each row: the shape without that axis. The
// weight, if given, has one element per class.
void check_classes(const InferContext& c, int scores, int target, int weight, std::int64_t axis) {
  c.require_float(scores);
  if (!is_integer(c.in(target).dtype))
    c.fail(fmt::format("class targets are integers (cross_entropy_probabilities takes floats): {}",
                       c.describe_inputs()));
  const Shape& shape = c.shape(scores);
  if (shape[static_cast<int>(axis)] == 0) c.fail("there is no class: " + c.describe_inputs());
  const Shape rows = shape.without(static_cast<int>(axis));
  if (!(c.shape(target) == rows))
    c.fail(fmt::format("{} must have shape {}, that of {} without class axis {}: {}",
                       c.name_of(target), rows.str(), c.name_of(scores), axis,
                       c.describe_inputs()));
  if (!c.has(weight)) return;
  c.require_same_dtype(scores, weight);
  c.require_shape(weight, {shape[static_cast<int>(axis)]});
}
int checked_class_axis(const InferContext& c) {
  c.require_float(0);
  if (c.shape(0).rank() == 0)
    c.fail(fmt::format("{} must have a class axis, got a scalar", c.name_of(0)));
  return class_axis(c.shape(0));
}
void check_label_smoothing(const InferContext& c, double epsilon) {
  if (!(epsilon >= 0 && epsilon <= 1))
    c.fail(fmt::format("label_smoothing must be in [0, 1], got {}", epsilon));
}
void check_ignore_index(const InferContext& c, std::int64_t index) {
  if (index < -kLargestIgnoreIndex || index > kLargestIgnoreIndex)
    c.fail(fmt::format("ignore_index must be between -2**53 and 2**53, got {}", index));
}

// Class targets of which some are ignored.
struct ClassRows {
  // As given, but 0 in ignored rows: every class is looked up, so one that is out of range is
  // found.
  Tensor target;
  std::optional<Tensor> ignored;  // none if the dtype cannot hold ignore_index

  // Bytes are widened: they cannot be indices, nor count all classes.
  ClassRows(const Tensor& given, std::int64_t ignore_index)
      : target(given.dtype() == u8 ? cast(given, i32) : given) {
    if (wrap_to(target.dtype(), ignore_index) != ignore_index) return;
    ignored = eq(target, static_cast<double>(ignore_index));
    target = where(*ignored, 0.0, target);
  }
  Tensor zero_if_ignored(const Tensor& rows) const {
    return ignored ? where(*ignored, 0.0, rows) : rows;
  }
};

// The score of each row's class.
Tensor at_class(const Tensor& scores, const Tensor& target, std::int64_t axis) {
  return squeeze(gather(scores, unsqueeze(target, axis), axis), axis);
}
// Class weights laid along the class axis of scores, to be broadcast.
Tensor along_classes(const Tensor& weight, const Tensor& scores, std::int64_t axis) {
  Ints sizes(static_cast<std::size_t>(scores.rank()), 1);
  sizes[axis] = weight.dim(0);
  return reshape(weight, sizes);
}
// Where a class is its row's target.
Tensor is_target(const Tensor& scores, const Tensor& target, std::int64_t axis) {
  return eq(unsqueeze(target, axis), iota_beside(scores, scores.shape(), axis, target.dtype()));
}

struct SoftmaxCrossEntropyAttrs {
  std::int64_t axis = -1;
  std::int64_t ignore_index = kIgnoredLabel;
  double label_smoothing = 0;
  static void fields(auto&& f, auto& a) {
    f("axis", a.axis, "the class axis");
    f("ignore_index", a.ignore_index, "rows with this target count nothing");
    f("label_smoothing", a.label_smoothing,
      "share of the target's weight that is spread over all classes");
  }
};
void infer_softmax_cross_entropy(InferContext& c, int logits, int target, int weight,
                                 SoftmaxCrossEntropyAttrs& a) {
  a.axis = c.axis(a.axis, c.shape(logits).rank());
  check_classes(c, logits, target, weight, a.axis);
  check_label_smoothing(c, a.label_smoothing);
  check_ignore_index(c, a.ignore_index);
}

struct SoftmaxCrossEntropyGrad : Family {
  using Attrs = SoftmaxCrossEntropyAttrs;
  static constexpr OpInfo info{"softmax_cross_entropy_grad",
                               "(dloss, logits, target, lse, weight?) -> dlogits",
                               "The gradient of softmax_cross_entropy with respect to the logits."};
  static constexpr std::array<int, 1> kIndexInputs{2};
  static void infer(InferContext& c, Attrs& a) {
    infer_softmax_cross_entropy(c, 1, 2, 4, a);
    for (const int rows : {0, 3}) {
      c.require_same_dtype(1, rows);
      c.require_shape(rows, c.shape(2));
    }
    c.result(c.in(1));
  }
  // Per row, with weights w and target t, the derivative by x_c of:
  // (1 - eps) w_t (lse - x_t) + eps / C sum_k w_k (lse - x_k).
  static Tensor expand(const ExpandContext& c, const Attrs& a) {
    const Tensor &x = c.in(1), &lse = c.in(3);
    const ClassRows rows(c.in(2), a.ignore_index);
    const double share = a.label_smoothing / static_cast<double>(x.dim(static_cast<int>(a.axis)));
    const Tensor dloss = unsqueeze(rows.zero_if_ignored(c.in(0)), a.axis),
                 probability = exp(x - unsqueeze(lse, a.axis));
    const Tensor hit = is_target(x, rows.target, a.axis);
    if (!c.has(4)) {
      const Tensor spread = probability - share;
      return dloss * (share == 0 ? where(hit, probability - 1.0, probability)
                                 : where(hit, spread - (1 - a.label_smoothing), spread));
    }
    const Tensor& weight = c.in(4);
    const Tensor own = unsqueeze(take(weight, rows.target) * (1 - a.label_smoothing), a.axis);
    const Tensor plain = probability * own - where(hit, own, 0.0);
    if (share == 0) return dloss * plain;
    return dloss * (plain + (probability * sum(weight) - along_classes(weight, x, a.axis)) * share);
  }
  static std::vector<Sample> samples() {
    const auto rows = floats({4}, -1, 1), lse = floats({4}, 1, 2), logits = floats({4, 3});
    return {sample({rows, logits, ints({4}, 0, 3), lse}, Attrs{-1, kIgnoredLabel, 0}),
            sample({rows, logits, ints({4}, 0, 3, i32), lse}, Attrs{1, 1, 0.2}),
            sample({rows, logits, ints({4}, 0, 3), lse, floats({3}, 0.5, 2)}, Attrs{1, 2, 0}),
            sample({floats({2, 2}), floats({2, 3, 2}), ints({2, 2}, 0, 3, u8), floats({2, 2}, 1, 2),
                    floats({3}, 0.5, 2)},
                   Attrs{1, 0, 0.3}),
            sample({floats({}), floats({5}), ints({}, 0, 5), floats({}, 1, 2)}, Attrs{0, -1, 0.1})};
  }
};

struct SoftmaxCrossEntropy : Family {
  using Attrs = SoftmaxCrossEntropyAttrs;
  static constexpr OpInfo info{
      "softmax_cross_entropy", "(logits, target, weight?) -> (loss, row_weight, lse)",
      "Per row: the cross entropy of softmax(logits) with a class, times its weight; that weight "
      "(0 for ignored rows); and log(sum(exp(logits)))."};
  static constexpr std::array<int, 1> kIndexInputs{1};
  // The rule covers the first two results. It has to cover row_weight: a mean divides by it, so it
  // always has an upstream gradient.
  static constexpr int kGradResults = 2;
  static void infer(InferContext& c, Attrs& a) {
    infer_softmax_cross_entropy(c, 0, 1, 2, a);
    for (int k = 0; k < 3; ++k) c.result({c.in(0).dtype, c.shape(1)});
  }
  // The maximum is taken off before anything is added up, so a number added to all logits is not
  // felt; an infinite one is left alone.
  static std::vector<Tensor> expand(const ExpandContext& c, const Attrs& a) {
    const Tensor& x = c.in(0);
    const ClassRows rows(c.in(1), a.ignore_index);
    const Tensor top = amax(x, {a.axis}, true), shift = where(is_finite(top), top, 0.0),
                 shifted = x - shift;
    const Tensor log_sum = log(sum(exp(shifted), {a.axis}));
    Tensor loss = log_sum - at_class(shifted, rows.target, a.axis), row_weight = ones_like(loss);
    if (c.has(2)) {
      row_weight = take(c.in(2), rows.target);
      loss = loss * row_weight;
    }
    if (a.label_smoothing != 0) {
      const Tensor each = unsqueeze(log_sum, a.axis) - shifted;
      const Tensor spread =
          sum(c.has(2) ? each * along_classes(c.in(2), x, a.axis) : each, {a.axis});
      loss = loss * (1 - a.label_smoothing) +
             spread * (a.label_smoothing / static_cast<double>(x.dim(static_cast<int>(a.axis))));
    }
    return {rows.zero_if_ignored(loss), rows.zero_if_ignored(row_weight),
            log_sum + squeeze(shift, a.axis)};
  }
  static void grad(GradContext& g, const Attrs& a) {
    if (g.has_dy(0))
      g.give(0, [&] {
        std::vector<Operand> inputs{g.dy(), g.in(0), g.in(1), g.out(2)};
        if (g.has(2)) inputs.push_back(g.in(2));
        return make<SoftmaxCrossEntropyGrad>(inputs, a);
      });
    g.give(2, [&] { return weight_gradient(g, a); });
  }
  static Tensor weight_gradient(const GradContext& g, const Attrs& a) {
    const Tensor& x = g.in(0);
    const ClassRows rows(g.in(1), a.ignore_index);
    const Tensor hit = is_target(x, rows.target, a.axis),
                 surprise = unsqueeze(g.out(2), a.axis) - x;
    const Tensor dloss = unsqueeze(rows.zero_if_ignored(g.dy(0)), a.axis),
                 drow_weight = unsqueeze(rows.zero_if_ignored(g.dy(1)), a.axis);
    Tensor each = where(hit, dloss * surprise * (1 - a.label_smoothing) + drow_weight, 0.0);
    if (a.label_smoothing != 0)
      each = each + dloss * surprise *
                        (a.label_smoothing / static_cast<double>(x.dim(static_cast<int>(a.axis))));
    Ints others;
    for (int axis = 0; axis < x.rank(); ++axis)
      if (axis != a.axis) others.push_back(axis);
    return others.empty() ? each : sum(each, others);
  }
  static std::vector<Sample> samples() {
    const auto logits = floats({6, 4}, -2, 2);
    return {sample({logits, ints({6}, 0, 4)}, Attrs{-1, kIgnoredLabel, 0}),
            sample({logits, ints({6}, 0, 4, i32)}, Attrs{1, 1, 0.2}),
            sample({logits, ints({6}, 0, 4), floats({4}, 0.5, 2)}, Attrs{1, 2, 0}),
            sample({floats({2, 3, 2}, -2, 2), ints({2, 2}, 0, 3, u8), floats({3}, 0.5, 2)},
                   Attrs{1, 0, 0.3}),
            sample({floats({3, 3}, -2, 2), ints({3}, 0, 3)}, Attrs{0, kIgnoredLabel, 0}),
            sample({floats({5}, -2, 2), ints({}, 0, 5)}, Attrs{0, -1, 0.1}),
            sample({floats({0, 3}), ints({0}, 0, 3)}, Attrs{1, kIgnoredLabel, 0}),
            sample({floats({2, 1}), ints({2}, 0, 1)}, Attrs{1, kIgnoredLabel, 0})};
  }
};

// The mean over rows of classes is weighted: the sum over the sum of the row weights, 0/0 if no row
// counts.
Tensor reduced_rows(const Tensor& loss, const Tensor& row_weight, Reduction reduction) {
  if (reduction == Reduction::none) return loss;
  return reduction == Reduction::sum ? sum(loss) : sum(loss) / sum(row_weight);
}

struct CrossEntropy : Family {
  struct Attrs {
    Reduction reduction = Reduction::mean;
    double label_smoothing = 0;
    std::int64_t ignore_index = kIgnoredLabel;
    static void fields(auto&& f, auto& a) {
      reduction_field(f, a);
      f("label_smoothing", a.label_smoothing,
        "share of the target's weight that is spread over all classes");
      f("ignore_index", a.ignore_index, "rows with this target count nothing");
    }
  };
  static constexpr OpInfo info{"cross_entropy", "(logits, target, weight?) -> loss",
                               "Cross entropy of softmax(logits) with integer classes; classes are "
                               "axis 1 (axis 0 of one axis). The mean is weighted.",
                               "SoftmaxCrossEntropyLoss"};
  static constexpr bool kSugar = true;
  static constexpr std::array<int, 1> kIndexInputs{1};
  static void infer(InferContext& c, Attrs& a) {
    check_classes(c, 0, 1, 2, checked_class_axis(c));
    check_label_smoothing(c, a.label_smoothing);
    check_ignore_index(c, a.ignore_index);
    c.result(reduced_type(c.in(0).dtype, c.shape(1), a.reduction));
  }
  static Tensor expand(const ExpandContext& c, const Attrs& a) {
    const std::vector<Tensor> all = c.all();
    const std::vector<Tensor> rows = make_all<SoftmaxCrossEntropy>(
        {all.begin(), all.end()}, {class_axis(c.in(0).shape()), a.ignore_index, a.label_smoothing});
    return reduced_rows(rows[0], rows[1], a.reduction);
  }
  static std::vector<Sample> samples() {
    const auto logits = floats({6, 5}, -3, 3);
    return {sample({logits, ints({6}, 0, 5)}, Attrs{}),
            sample({logits, ints({6}, 0, 5, i32)}, Attrs{Reduction::sum, 0.1, 2}),
            sample({logits, ints({6}, 0, 5), floats({5}, 0.5, 2)},
                   Attrs{Reduction::none, 0, kIgnoredLabel}),
            sample({logits, ints({6}, 0, 5), floats({5}, 0.5, 2)}, Attrs{Reduction::mean, 0.2, 3}),
            sample({floats({2, 3, 2, 2}), ints({2, 2, 2}, 0, 3)}, Attrs{Reduction::mean, 0, 1}),
            sample({floats({4}), ints({}, 0, 4)}, Attrs{}),
            sample({floats({1, 1}), ints({1}, 0, 1)}, Attrs{})};
  }
};

struct NllLoss : Family {
  struct Attrs {
    Reduction reduction = Reduction::mean;
    std::int64_t ignore_index = kIgnoredLabel;
    static void fields(auto&& f, auto& a) {
      reduction_field(f, a);
      f("ignore_index", a.ignore_index, "rows with this target count nothing");
    }
  };
  static constexpr OpInfo info{
      "nll_loss", "(log_probabilities, target, weight?) -> loss",
      "cross_entropy from log-probabilities: minus that of the class, times its weight.",
      "NegativeLogLikelihoodLoss"};
  static constexpr bool kSugar = true;
  static constexpr std::array<int, 1> kIndexInputs{1};
  static void infer(InferContext& c, Attrs& a) {
    check_classes(c, 0, 1, 2, checked_class_axis(c));
    check_ignore_index(c, a.ignore_index);
    c.result(reduced_type(c.in(0).dtype, c.shape(1), a.reduction));
  }
  static Tensor expand(const ExpandContext& c, const Attrs& a) {
    const ClassRows rows(c.in(1), a.ignore_index);
    Tensor loss = -at_class(c.in(0), rows.target, class_axis(c.in(0).shape())),
           row_weight = ones_like(loss);
    if (c.has(2)) {
      row_weight = take(c.in(2), rows.target);
      loss = loss * row_weight;
    }
    return reduced_rows(rows.zero_if_ignored(loss), rows.zero_if_ignored(row_weight), a.reduction);
  }
  static std::vector<Sample> samples() {
    const auto scores = floats({6, 5}, -3, 0);
    return {sample({scores, ints({6}, 0, 5)}, Attrs{}),
            sample({scores, ints({6}, 0, 5, i32)}, Attrs{Reduction::sum, 2}),
            sample({scores, ints({6}, 0, 5, u8), floats({5}, 0.5, 2)},
                   Attrs{Reduction::none, kIgnoredLabel}),
            sample({floats({2, 3, 4}), ints({2, 4}, 0, 3), floats({3}, 0.5, 2)},
                   Attrs{Reduction::mean, 1}),
            sample({floats({4}), ints({}, 0, 4)}, Attrs{})};
  }
};

// --- classes by probability

struct CrossEntropyProbabilities : Family {
  struct Attrs {
    Reduction reduction = Reduction::mean;
    double label_smoothing = 0;
    static void fields(auto&& f, auto& a) {
      reduction_field(f, a);
      f("label_smoothing", a.label_smoothing,
        "share of the target that is spread over all classes");
    }
  };
  static constexpr OpInfo info{
      "cross_entropy_probabilities", "(logits, target, weight?) -> loss",
      "Cross entropy of softmax(logits) with target probabilities: sum over classes, mean over "
      "rows; classes are axis 1 (axis 0 of one axis)."};
  static constexpr bool kSugar = true;
  static void infer(InferContext& c, Attrs& a) {
    const int axis = checked_class_axis(c);
    c.require_same_dtype(0, 1);
    if (!(c.shape(1) == c.shape(0)))
      c.fail("probability targets have the shape of the logits: " + c.describe_inputs());
    if (c.shape(0)[axis] == 0) c.fail("there is no class: " + c.describe_inputs());
    if (c.has(2)) {
      c.require_same_dtype(0, 2);
      c.require_shape(2, {c.shape(0)[axis]});
    }
    check_label_smoothing(c, a.label_smoothing);
    c.result(reduced_type(c.in(0).dtype, c.shape(0).without(axis), a.reduction));
  }
  static Tensor expand(const ExpandContext& c, const Attrs& a) {
    const Tensor& x = c.in(0);
    const std::int64_t axis = class_axis(x.shape()), classes = x.dim(static_cast<int>(axis));
    Tensor share = c.in(1);
    if (a.label_smoothing != 0)
      share = share * (1 - a.label_smoothing) + a.label_smoothing / static_cast<double>(classes);
    if (c.has(2)) share = share * along_classes(c.in(2), x, axis);
    return reduced(-sum(share * log_softmax(x, axis), {axis}), a.reduction, x.numel() / classes);
  }
  static std::vector<Sample> samples() {
    const auto logits = floats({6, 5}, -3, 3), target = floats({6, 5}, 0, 1),
               weight = floats({5}, 0.5, 2);
    return {sample({logits, target}, Attrs{}),
            sample({logits, target, weight}, Attrs{Reduction::sum, 0.1}),
            sample({logits, target, weight}, Attrs{Reduction::none, 0}),
            sample({floats({2, 3, 4}), floats({2, 3, 4}, 0, 1)}, Attrs{Reduction::mean, 0.3}),
            sample({floats({4}), floats({4}, 0, 1)}, Attrs{})};
  }
};

struct KlDivWithLogits : Family {
  using Attrs = LossAttrs;
  static constexpr OpInfo info{
      "kl_div_with_logits", "(logits, target) -> loss",
      "KL divergence of softmax(logits) from the target probabilities: sum over classes (the last "
      "axis), mean over rows; zeros in the target add 0."};
  static constexpr bool kSugar = true;
  static void infer(InferContext& c, Attrs& a) {
    c.require_float(0);
    c.require_same_dtype(0, 1);
    if (c.shape(0).rank() == 0) c.fail("logits must have a class axis, got a scalar");
    if (!(c.shape(1) == c.shape(0)))
      c.fail("probability targets have the shape of the logits: " + c.describe_inputs());
    if (c.shape(0).back() == 0) c.fail("there is no class: " + c.describe_inputs());
    c.result(reduced_type(c.in(0).dtype, c.shape(0).without(c.shape(0).rank() - 1), a.reduction));
  }
  // Where the target is 0 both logarithms are replaced by 0: nothing infinite is multiplied by it,
  // forwards or backwards. The gradient of such a target, minus infinity in truth, is 0.
  static Tensor expand(const ExpandContext& c, const Attrs& a) {
    const Tensor &x = c.in(0), &t = c.in(1), absent = eq(t, 0.0);
    const Tensor surprise = log(where(absent, 1.0, t)) - where(absent, 0.0, log_softmax(x, -1));
    return reduced(sum(t * surprise, {x.rank() - 1}), a.reduction, x.numel() / x.shape().back());
  }
  static std::vector<Sample> samples() {
    const auto logits = floats({6, 5}, -3, 3), target = floats({6, 5}, 0.1, 1);
    return {sample({logits, target}, Attrs{}),
            sample({logits, target}, Attrs{Reduction::sum}),
            sample({logits, target}, Attrs{Reduction::none}),
            sample({floats({2, 3, 4}), floats({2, 3, 4}, 0.1, 1)}, Attrs{}),
            sample({floats({4}), floats({4}, 0.1, 1)}, Attrs{}),
            sample({floats({2, 1}), floats({2, 1}, 0.1, 1)}, Attrs{})};
  }
};

}  // namespace

std::vector<const OpDef*> class_loss_ops() {
  return family<SoftmaxCrossEntropy, SoftmaxCrossEntropyGrad, CrossEntropy, NllLoss,
                CrossEntropyProbabilities, KlDivWithLogits>();
}

}  // namespace pantala::ops

namespace pantala {

using namespace ops;

Tensor cross_entropy(Operand logits, Operand target, const CrossEntropyOptions& o) {
  const std::vector<Operand> inputs = with_weight({logits, target}, o.weight);
  if (!is_float(target.tensor().dtype()))
    return make<CrossEntropy>(inputs, {o.reduction, o.label_smoothing, o.ignore_index});
  if (o.ignore_index != CrossEntropyOptions{}.ignore_index)
    ir::throw_type_error(
        "cross_entropy", ir::provenance(logits.where()),
        "ignore_index is for class targets only, got target " + target.tensor().type().str());
  return make<CrossEntropyProbabilities>(inputs, {o.reduction, o.label_smoothing});
}
Tensor nll_loss(Operand log_probabilities, Operand target, const NllOptions& o) {
  return make<NllLoss>(with_weight({log_probabilities, target}, o.weight),
                       {o.reduction, o.ignore_index});
}
Tensor kl_div_with_logits(Operand logits, Operand target, const LossOptions& o) {
  return make<KlDivWithLogits>({logits, target}, {o.reduction});
}

}  // namespace pantala
