// Softmax and the normalisations. Each is a composite whose statistics are results of their own, so
// that its gradient, again one op with an expansion, reads them instead of taking them anew: a
// target may run either as one kernel. Variances are taken in two passes, as the mean of (x -
// mean)^2: E[x^2] - E[x]^2 loses every digit where the mean is large.
#include "ops/norm.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ops/define.h"

namespace pantala::ops {
namespace {

using op::EpsAttrs;
using op::SoftmaxAttrs;

struct Family {
  static constexpr std::string_view kFamily = "norm";
};

// --- softmax

void infer_softmax(InferContext& c, SoftmaxAttrs& a) {
  c.require_float(0);
  a.axis = c.axis(a.axis, c.shape(0).rank());
  c.result(c.in(0));
}

std::vector<Sample> softmax_samples() {
  return {sample({floats({3, 7}, -4, 4)}, SoftmaxAttrs{-1}),
          sample({floats({4, 4}, -4, 4)}, SoftmaxAttrs{0}),
          sample({floats({2, 3, 5}, -4, 4)}, SoftmaxAttrs{1}),
          sample({floats({2, 1, 3}, -4, 4)}, SoftmaxAttrs{-2}),
          sample({floats({6}, 996, 1000)}, SoftmaxAttrs{0}),
          sample({floats({0, 3})}, SoftmaxAttrs{1}),
          sample({floats({3, 0})}, SoftmaxAttrs{1})};
}

// Nothing to share out: there is no maximum to be subtracted, and the result is as empty as x.
bool has_no_elements(const Tensor& x, const SoftmaxAttrs& a) {
  return x.dim(static_cast<int>(a.axis)) == 0;
}

struct Softmax : op::Softmax, Family {
  static constexpr OpInfo info{name, "(x) -> y",
                               "exp(x) / sum(exp(x)) along the axis, without overflow.", "Softmax"};
  static void infer(InferContext& c, Attrs& a) { infer_softmax(c, a); }
  static Tensor expand(const ExpandContext& c, const Attrs& a) {
    if (has_no_elements(c.in(0), a)) return c.in(0);
    const Tensor e = exp(c.in(0) - amax(c.in(0), {a.axis}, true));
    return e / sum(e, {a.axis}, true);
  }
  static void grad(GradContext& g, const Attrs& a) {
    g.give(0, [&] { return g.out() * (g.dy() - sum(g.dy() * g.out(), {a.axis}, true)); });
  }
  static std::vector<Sample> samples() { return softmax_samples(); }
};

struct LogSoftmax : op::LogSoftmax, Family {
  static constexpr OpInfo info{
      name, "(x) -> y", "The logarithm of softmax, exact where softmax is near 0.", "LogSoftmax"};
  static void infer(InferContext& c, Attrs& a) { infer_softmax(c, a); }
  // The maximum is subtracted before the logarithm of the sum: the sum of both would round away the
  // smaller one.
  static Tensor expand(const ExpandContext& c, const Attrs& a) {
    if (has_no_elements(c.in(0), a)) return c.in(0);
    const Tensor centred = c.in(0) - amax(c.in(0), {a.axis}, true);
    return centred - log(sum(exp(centred), {a.axis}, true));
  }
  static void grad(GradContext& g, const Attrs& a) {
    g.give(0, [&] { return g.dy() - exp(g.out()) * sum(g.dy(), {a.axis}, true); });
  }
  static std::vector<Sample> samples() { return softmax_samples(); }
};

// --- what the normalisations share

// How a norm sees x, and along which axes its numbers are shared. Statistics have the sizes of the
// view without `over`.
struct Layout {
  Ints view;              // the same elements as x
  Ints over;              // axes that one mean is taken over; never empty
  Ints shared;            // axes along which weight and bias repeat
  std::int64_t channels;  // the size of weight and bias
};

Ints all_axes_but(int rank, int axis) {
  Ints axes;
  for (int k = 0; k < rank; ++k)
    if (k != axis) axes.push_back(k);
  return axes;
}

Layout last_axis_layout(const Shape& x) {
  return {x.vec(), {x.rank() - 1}, all_axes_but(x.rank(), x.rank() - 1), x.back()};
}
Layout channel_layout(const Shape& x) {
  return {x.vec(), all_axes_but(x.rank(), 1), all_axes_but(x.rank(), 1), x[1]};
}
// [batch, groups, channels / groups, positions]
Layout group_layout(const Shape& x, std::int64_t groups) {
  return {{x[0], groups, x[1] / groups, Shape(Ints(x.begin() + 2, x.end())).numel()},
          {2, 3},
          {0, 3},
          x[1]};
}

Ints with_ones(Ints sizes, const Ints& axes) {
  for (const std::int64_t axis : axes) sizes[axis] = 1;
  return sizes;
}

Ints statistic_sizes(const Layout& l) {
  Ints sizes;
  for (std::int64_t axis = 0; axis < std::ssize(l.view); ++axis)
    if (std::find(l.over.begin(), l.over.end(), axis) == l.over.end())
      sizes.push_back(l.view[axis]);
  return sizes;
}

// A statistic, or a weight or bias, with axes that broadcast to the view.
Tensor spread_statistic(const Tensor& t, const Layout& l) {
  return reshape(t, with_ones(l.view, l.over));
}
Tensor spread_parameter(const Tensor& t, const Layout& l) {
  return reshape(t, with_ones(l.view, l.shared));
}

// The gradient of weight or bias from its gradient at every element of the view. A vector has no
// axis to sum over (an empty list would be all).
Tensor sum_to_parameter(const Tensor& t, const Layout& l) {
  return reshape(l.shared.empty() ? t : sum(t, l.shared), {l.channels});
}

// All in the view, the last three with size 1 along `over`.
struct Statistics {
  Tensor centred, mean, variance, rstd;
};
Statistics statistics(const Tensor& x, const Layout& l, double eps) {
  const Tensor view = reshape(x, l.view), centre = mean(view, l.over, true),
               centred = view - centre;
  const Tensor variance = mean(centred * centred, l.over, true);
  return {centred, centre, variance, rsqrt(variance + eps)};
}

// normalised * weight + bias in the shape of x; inputs 1 and 2 are weight and bias, where present.
Tensor affine(const ExpandContext& c, const Tensor& normalised, const Layout& l) {
  Tensor y = normalised;
  if (c.has(1)) y = y * spread_parameter(c.in(1), l);
  if (c.has(2)) y = y + spread_parameter(c.in(2), l);
  return reshape(y, c.in(0).shape().vec());
}

// "(x, weight?, bias?) -> (y, mean, rstd)"
std::vector<Tensor> expand_norm(const ExpandContext& c, const Layout& l, double eps) {
  const Statistics s = statistics(c.in(0), l, eps);
  return {affine(c, s.centred * s.rstd, l), reshape(s.mean, statistic_sizes(l)),
          reshape(s.rstd, statistic_sizes(l))};
}

// "(dy, x, mean, rstd, weight?) -> (dx, dweight, dbias)": mean and rstd depend on x as well, which
// takes the means of the gradient and of its product with the normalised x away from it.
std::vector<Tensor> expand_norm_grad(const ExpandContext& c, const Layout& l) {
  const Tensor dy = reshape(c.in(0), l.view), rstd = spread_statistic(c.in(3), l);
  const Tensor normalised = (reshape(c.in(1), l.view) - spread_statistic(c.in(2), l)) * rstd;
  const Tensor d = c.has(4) ? dy * spread_parameter(c.in(4), l) : dy;
  const Tensor dx =
      rstd * (d - mean(d, l.over, true) - normalised * mean(d * normalised, l.over, true));
  return {reshape(dx, c.in(1).shape().vec()), sum_to_parameter(dy * normalised, l),
          sum_to_parameter(dy, l)};
}

// The gradients of x, weight and bias (inputs 0 to 2), each from its result of the gradient op.
template <class GradOp>
void give_norm_gradients(GradContext& g, const std::vector<Operand>& inputs,
                         const attrs_t<GradOp>& attrs = {}) {
  const std::vector<Tensor> gradients = make_all<GradOp>(inputs, attrs);
  for (int i = 0; i < std::min(g.count(), static_cast<int>(gradients.size())); ++i)
    g.give(i, [&] { return gradients[i]; });
}

std::vector<Operand> norm_grad_inputs(const GradContext& g, int mean_result) {
  std::vector<Operand> inputs{g.dy(), g.in(0), g.out(mean_result), g.out(mean_result + 1)};
  if (g.has(1)) inputs.push_back(g.in(1));
  return inputs;
}

// --- shape rules

void check_eps(const InferContext& c, double eps) {
  if (!std::isfinite(eps) || eps < 0)
    c.fail(fmt::format("eps must be finite and not negative, got {}", eps));
}

void check_last_axis(const InferContext& c, int x) {
  c.require_float(x);
  if (c.shape(x).rank() < 1 || c.shape(x).back() == 0)
    c.fail("needs a last axis with elements: " + c.describe_inputs());
}

void check_channels(const InferContext& c, int x) {
  c.require_float(x);
  if (c.shape(x).rank() < 2)
    c.fail("needs at least 2 axes, with channels on axis 1: " + c.describe_inputs());
}

// More than one value per channel: the unbiased variance of a single one would divide by 0.
void check_batch(const InferContext& c, int x) {
  check_channels(c, x);
  if (c.shape(x).with(1, 1).numel() < 2)
    c.fail("expected more than 1 value per channel when training: " + c.describe_inputs());
}

void check_groups(const InferContext& c, int x, std::int64_t groups) {
  check_channels(c, x);
  const Shape& shape = c.shape(x);
  if (groups < 1 || shape[1] % groups != 0)
    c.fail(fmt::format("{} groups do not divide the channels (axis 1): {}", groups,
                       c.describe_inputs()));
  if (shape.with(0, 1).numel() == 0) c.fail("a group has no elements: " + c.describe_inputs());
}

// Inputs first to last, as far as they are given: the dtype of x and this shape.
void check_inputs(const InferContext& c, int x, int first, int last, const Shape& shape) {
  for (int i = first; i <= last && c.has(i); ++i) {
    c.require_same_dtype(x, i);
    c.require_shape(i, shape);
  }
}

void infer_norm(InferContext& c, const Layout& l, double eps) {
  check_eps(c, eps);
  check_inputs(c, 0, 1, 2, {l.channels});
  c.result(c.in(0));
  for (int k = 0; k < 2; ++k) c.result({c.in(0).dtype, statistic_sizes(l)});
}

void infer_norm_grad(InferContext& c, const Layout& l) {
  check_inputs(c, 1, 0, 0, c.shape(1));
  check_inputs(c, 1, 2, 3, statistic_sizes(l));
  check_inputs(c, 1, 4, 4, {l.channels});
  c.result(c.in(1));
  for (int k = 0; k < 2; ++k) c.result({c.in(1).dtype, {l.channels}});
}

// --- layer norm

struct LayerNormGrad : Family {
  static constexpr OpInfo info{"layer_norm_grad",
                               "(dy, x, mean, rstd, weight?) -> (dx, dweight, dbias)",
                               "The gradients of layer_norm from its saved statistics."};
  static void infer(InferContext& c) {
    check_last_axis(c, 1);
    infer_norm_grad(c, last_axis_layout(c.shape(1)));
  }
  static std::vector<Tensor> expand(const ExpandContext& c) {
    return expand_norm_grad(c, last_axis_layout(c.in(1).shape()));
  }
  static std::vector<Sample> samples() {
    return {
        sample({floats({5, 8}), floats({5, 8}), floats({5}), floats({5}, 0.5, 2),
                floats({8}, 0.5, 1.5)}),
        sample({floats({2, 3, 4}), floats({2, 3, 4}), floats({2, 3}), floats({2, 3}, 0.5, 2)}),
        sample({floats({3, 3}), floats({3, 3}), floats({3}), floats({3}, 0.5, 2),
                floats({3}, 0.5, 1.5)}),
        sample({floats({6}), floats({6}), floats({}), floats({}, 0.5, 2), floats({6}, 0.5, 1.5)}),
        sample({floats({4, 1}), floats({4, 1}), floats({4}), floats({4}, 0.5, 2),
                floats({1}, 0.5, 1.5)})};
  }
};

struct LayerNorm : op::LayerNorm, Family {
  static constexpr OpInfo info{name, "(x, weight?, bias?) -> (y, mean, rstd)",
                               "(x - mean) / sqrt(variance + eps) * weight + bias, over the last "
                               "axis. Also the means and the reciprocal deviations.",
                               "LayerNormalization"};
  static constexpr int kGradResults = 1;
  static void infer(InferContext& c, const Attrs& a) {
    check_last_axis(c, 0);
    infer_norm(c, last_axis_layout(c.shape(0)), a.eps);
  }
  static std::vector<Tensor> expand(const ExpandContext& c, const Attrs& a) {
    return expand_norm(c, last_axis_layout(c.in(0).shape()), a.eps);
  }
  static void grad(GradContext& g) {
    give_norm_gradients<LayerNormGrad>(g, norm_grad_inputs(g, 1));
  }
  static std::vector<Sample> samples() {
    return {sample({floats({5, 8}), floats({8}, 0.5, 1.5), floats({8})}, Attrs{}),
            sample({floats({2, 3, 6})}, Attrs{1e-3}),
            sample({floats({4, 4}), floats({4}, 0.5, 1.5)}, Attrs{}),
            sample({floats({7}), floats({7}, 0.5, 1.5), floats({7})}, Attrs{0.1}),
            sample({floats({3, 1}), floats({1}, 0.5, 1.5), floats({1})}, Attrs{0.5}),
            sample({floats({0, 4}), floats({4}), floats({4})}, Attrs{})};
  }
};

// --- rms norm

struct RmsNormGrad : Family {
  static constexpr OpInfo info{"rms_norm_grad", "(dy, x, rstd, weight?) -> (dx, dweight)",
                               "The gradients of rms_norm from its saved statistics."};
  static void infer(InferContext& c) {
    check_last_axis(c, 1);
    const Layout l = last_axis_layout(c.shape(1));
    check_inputs(c, 1, 0, 0, c.shape(1));
    check_inputs(c, 1, 2, 2, statistic_sizes(l));
    check_inputs(c, 1, 3, 3, {l.channels});
    c.result(c.in(1));
    c.result({c.in(1).dtype, {l.channels}});
  }
  static std::vector<Tensor> expand(const ExpandContext& c) {
    const Layout l = last_axis_layout(c.in(1).shape());
    const Tensor &dy = c.in(0), rstd = spread_statistic(c.in(2), l), normalised = c.in(1) * rstd;
    const Tensor d = c.has(3) ? dy * c.in(3) : dy;
    return {rstd * (d - normalised * mean(d * normalised, l.over, true)),
            sum_to_parameter(dy * normalised, l)};
  }
  static std::vector<Sample> samples() {
    return {sample({floats({5, 8}), floats({5, 8}), floats({5}, 0.5, 2), floats({8}, 0.5, 1.5)}),
            sample({floats({2, 3, 4}), floats({2, 3, 4}), floats({2, 3}, 0.5, 2)}),
            sample({floats({3, 3}), floats({3, 3}), floats({3}, 0.5, 2), floats({3}, 0.5, 1.5)}),
            sample({floats({6}), floats({6}), floats({}, 0.5, 2)})};
  }
};

struct RmsNorm : op::RmsNorm, Family {
  static constexpr OpInfo info{
      name, "(x, weight?) -> (y, rstd)",
      "x / sqrt(mean(x^2) + eps) * weight, over the last axis. Also the reciprocal roots.",
      "RMSNormalization"};
  static constexpr int kGradResults = 1;
  static void infer(InferContext& c, const Attrs& a) {
    check_last_axis(c, 0);
    check_eps(c, a.eps);
    const Layout l = last_axis_layout(c.shape(0));
    check_inputs(c, 0, 1, 1, {l.channels});
    c.result(c.in(0));
    c.result({c.in(0).dtype, statistic_sizes(l)});
  }
  static std::vector<Tensor> expand(const ExpandContext& c, const Attrs& a) {
    const Layout l = last_axis_layout(c.in(0).shape());
    const Tensor rstd = rsqrt(mean(c.in(0) * c.in(0), l.over, true) + a.eps);
    return {affine(c, c.in(0) * rstd, l), reshape(rstd, statistic_sizes(l))};
  }
  static void grad(GradContext& g) {
    std::vector<Operand> inputs{g.dy(), g.in(0), g.out(1)};
    if (g.has(1)) inputs.push_back(g.in(1));
    give_norm_gradients<RmsNormGrad>(g, inputs);
  }
  static std::vector<Sample> samples() {
    return {sample({floats({5, 8}), floats({8}, 0.5, 1.5)}, Attrs{}),
            sample({floats({2, 3, 6})}, Attrs{1e-3}),
            sample({floats({4, 4}), floats({4}, 0.5, 1.5)}, Attrs{}),
            sample({floats({7}), floats({7}, 0.5, 1.5)}, Attrs{0.1}),
            sample({floats({3, 1}, 0.5, 1)}, Attrs{0.5}),
            sample({floats({0, 4}), floats({4})}, Attrs{})};
  }
};

// --- group norm

struct GroupNormGrad : Family {
  struct Attrs {
    std::int64_t groups = 1;
    static void fields(auto&& f, auto& a) {
      f("groups", a.groups, "number of groups of channels", Field::required);
    }
  };
  static constexpr OpInfo info{"group_norm_grad",
                               "(dy, x, mean, rstd, weight?) -> (dx, dweight, dbias)",
                               "The gradients of group_norm from its saved statistics."};
  static void infer(InferContext& c, const Attrs& a) {
    check_groups(c, 1, a.groups);
    infer_norm_grad(c, group_layout(c.shape(1), a.groups));
  }
  static std::vector<Tensor> expand(const ExpandContext& c, const Attrs& a) {
    return expand_norm_grad(c, group_layout(c.in(1).shape(), a.groups));
  }
  static std::vector<Sample> samples() {
    return {
        sample({floats({2, 6, 3, 2}), floats({2, 6, 3, 2}), floats({2, 3}), floats({2, 3}, 0.5, 2),
                floats({6}, 0.5, 1.5)},
               Attrs{3}),
        sample({floats({3, 4}), floats({3, 4}), floats({3, 1}), floats({3, 1}, 0.5, 2)}, Attrs{1})};
  }
};

struct GroupNorm : op::GroupNorm, Family {
  static constexpr OpInfo info{name, "(x, weight?, bias?) -> (y, mean, rstd)",
                               "(x - mean) / sqrt(variance + eps) * weight + bias, over the "
                               "channels (axis 1) of a group and all positions.",
                               "GroupNormalization"};
  static constexpr int kGradResults = 1;
  static void infer(InferContext& c, const Attrs& a) {
    check_groups(c, 0, a.groups);
    infer_norm(c, group_layout(c.shape(0), a.groups), a.eps);
  }
  static std::vector<Tensor> expand(const ExpandContext& c, const Attrs& a) {
    return expand_norm(c, group_layout(c.in(0).shape(), a.groups), a.eps);
  }
  static void grad(GradContext& g, const Attrs& a) {
    give_norm_gradients<GroupNormGrad>(g, norm_grad_inputs(g, 1), {a.groups});
  }
  static std::vector<Sample> samples() {
    return {sample({floats({2, 6, 3, 2}), floats({6}, 0.5, 1.5), floats({6})}, Attrs{3, 1e-5}),
            sample({floats({2, 4, 5})}, Attrs{1, 1e-3}),
            sample({floats({4, 4}), floats({4}, 0.5, 1.5)}, Attrs{2, 1e-3}),
            sample({floats({1, 3, 1, 5}), floats({3}, 0.5, 1.5), floats({3})}, Attrs{3, 1e-5}),
            sample({floats({0, 4, 2})}, Attrs{2, 1e-5})};
  }
};

// --- batch norm

struct BatchNormGrad : Family {
  static constexpr OpInfo info{"batch_norm_grad",
                               "(dy, x, mean, rstd, weight) -> (dx, dweight, dbias)",
                               "The gradients of batch_norm_train from its saved statistics."};
  static void infer(InferContext& c) {
    check_batch(c, 1);
    infer_norm_grad(c, channel_layout(c.shape(1)));
  }
  static std::vector<Tensor> expand(const ExpandContext& c) {
    return expand_norm_grad(c, channel_layout(c.in(1).shape()));
  }
  static std::vector<Sample> samples() {
    return {sample({floats({2, 3, 2, 4}), floats({2, 3, 2, 4}), floats({3}), floats({3}, 0.5, 2),
                    floats({3}, 0.5, 1.5)}),
            sample({floats({4, 4}), floats({4, 4}), floats({4}), floats({4}, 0.5, 2),
                    floats({4}, 0.5, 1.5)}),
            sample({floats({1, 2, 5}), floats({1, 2, 5}), floats({2}), floats({2}, 0.5, 2),
                    floats({2})})};
  }
};

struct BatchNormTrain : op::BatchNormTrain, Family {
  static constexpr OpInfo info{
      name, "(x, weight, bias, running_mean, running_var) -> (y, new_mean, new_var, mean, rstd)",
      "x normalised per channel (axis 1) with the mean and variance of the batch. Also the new "
      "running statistics, the variance unbiased."};
  static constexpr std::array<int, 2> kIndexInputs{3, 4};
  static constexpr int kGradResults = 1;
  static void infer(InferContext& c, const Attrs& a) {
    check_batch(c, 0);
    check_eps(c, a.eps);
    if (!(a.momentum >= 0 && a.momentum <= 1))
      c.fail(fmt::format("momentum must be in [0, 1], got {}", a.momentum));
    check_inputs(c, 0, 1, 4, {c.shape(0)[1]});
    c.result(c.in(0));
    for (int k = 0; k < 4; ++k) c.result(c.in(1));
  }
  static std::vector<Tensor> expand(const ExpandContext& c, const Attrs& a) {
    const Layout l = channel_layout(c.in(0).shape());
    const Statistics s = statistics(c.in(0), l, a.eps);
    const auto count = static_cast<double>(c.in(0).shape().with(1, 1).numel());
    const Tensor centre = reshape(s.mean, {l.channels}),
                 variance = reshape(s.variance, {l.channels});
    const auto moved = [&](const Tensor& running, const Tensor& now) {
      return running * (1 - a.momentum) + now * a.momentum;
    };
    return {affine(c, s.centred * s.rstd, l), moved(c.in(3), centre),
            moved(c.in(4), variance * (count / (count - 1))), centre,
            reshape(s.rstd, {l.channels})};
  }
  static void grad(GradContext& g) {
    give_norm_gradients<BatchNormGrad>(g, norm_grad_inputs(g, 3));
  }
  static std::vector<Sample> samples() {
    const auto inputs = [](Shape shape) {
      const Shape channels{shape[1]};
      return std::vector{floats(std::move(shape)), floats(channels, 0.5, 1.5), floats(channels),
                         floats(channels), floats(channels, 0.5, 1.5)};
    };
    return {sample(inputs({2, 3, 2, 4}), Attrs{}), sample(inputs({4, 4}), Attrs{0.3, 1e-3}),
            sample(inputs({1, 2, 5}), Attrs{1, 1e-5}), sample(inputs({5, 1}), Attrs{0, 0.1})};
  }
};

struct BatchNormEval : op::BatchNormEval, Family {
  static constexpr OpInfo info{
      name, "(x, weight, bias, running_mean, running_var) -> y",
      "(x - running_mean) / sqrt(running_var + eps) * weight + bias per channel (axis 1).",
      "BatchNormalization"};
  static void infer(InferContext& c, const Attrs& a) {
    check_channels(c, 0);
    check_eps(c, a.eps);
    check_inputs(c, 0, 1, 4, {c.shape(0)[1]});
    c.result(c.in(0));
  }
  static Tensor expand(const ExpandContext& c, const Attrs& a) {
    const Layout l = channel_layout(c.in(0).shape());
    return affine(
        c, (c.in(0) - spread_parameter(c.in(3), l)) * spread_parameter(rsqrt(c.in(4) + a.eps), l),
        l);
  }
  static std::vector<Sample> samples() {
    return {sample({floats({2, 3, 2, 4}), floats({3}, 0.5, 1.5), floats({3}), floats({3}),
                    floats({3}, 0.5, 1.5)},
                   Attrs{}),
            sample({floats({4, 4}), floats({4}, 0.5, 1.5), floats({4}), floats({4}),
                    floats({4}, 0.5, 1.5)},
                   Attrs{1e-3}),
            sample({floats({1, 2}), floats({2}, 0.5, 1.5), floats({2}), floats({2}),
                    floats({2}, 0.5, 1.5)},
                   Attrs{}),
            sample({floats({0, 2, 3}), floats({2}, 0.5, 1.5), floats({2}), floats({2}),
                    floats({2}, 0.5, 1.5)},
                   Attrs{})};
  }
};

// x with weight and bias. Inputs are told apart by position: a bias without a weight comes with a
// weight of ones.
std::vector<Operand> norm_inputs(const Operand& x, const std::optional<Tensor>& weight,
                                 const std::optional<Tensor>& bias) {
  std::vector<Operand> inputs{x};
  if (weight)
    inputs.push_back(*weight);
  else if (bias)
    inputs.push_back(ones_like(*bias));
  if (bias) inputs.push_back(*bias);
  return inputs;
}

}  // namespace

std::vector<const OpDef*> norm_ops() {
  return family<Softmax, LogSoftmax, LayerNorm, LayerNormGrad, RmsNorm, RmsNormGrad, GroupNorm,
                GroupNormGrad, BatchNormTrain, BatchNormGrad, BatchNormEval>();
}

}  // namespace pantala::ops

namespace pantala {

using namespace ops;

Tensor softmax(Operand x, std::int64_t axis) { return make<Softmax>({x}, {axis}); }
Tensor log_softmax(Operand x, std::int64_t axis) { return make<LogSoftmax>({x}, {axis}); }
Tensor layer_norm(Operand x, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias,
                  const NormOptions& o) {
  return make<LayerNorm>(norm_inputs(x, weight, bias), {o.eps});
}
Tensor rms_norm(Operand x, const std::optional<Tensor>& weight, const NormOptions& o) {
  return make<RmsNorm>(norm_inputs(x, weight, {}), {o.eps});
}
Tensor group_norm(Operand x, std::int64_t groups, const std::optional<Tensor>& weight,
                  const std::optional<Tensor>& bias, const NormOptions& o) {
  return make<GroupNorm>(norm_inputs(x, weight, bias), {groups, o.eps});
}
BatchNormResult batch_norm_train(Operand x, Operand weight, Operand bias, Operand running_mean,
                                 Operand running_var, const BatchNormOptions& o) {
  const std::vector<Tensor> results =
      make_all<BatchNormTrain>({x, weight, bias, running_mean, running_var}, {o.momentum, o.eps});
  return {results[0], results[1], results[2]};
}
Tensor batch_norm_eval(Operand x, Operand weight, Operand bias, Operand running_mean,
                       Operand running_var, const NormOptions& o) {
  return make<BatchNormEval>({x, weight, bias, running_mean, running_var}, {o.eps});
}

}  // namespace pantala
