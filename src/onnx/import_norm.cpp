// Softmax and the normalisations.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "onnx/adapters.h"
#include "ops/table.h"

namespace pantala::onnx {

namespace {

// --- softmax

// Up to version 12 the axes before and behind `axis` are taken together, and the latter share one
// sum.
template <Tensor (*kFunction)(const Tensor&, std::int64_t)>
void convert_along_axis(Node& node) {
  const Tensor x = node.tensor(0);
  if (node.opset() >= 13) {
    node.give(kFunction(x, node.axis(node.attribute("axis", std::int64_t{-1}), x.rank())));
    return;
  }
  const std::int64_t given = node.attribute("axis", std::int64_t{1});
  const std::int64_t axis = given < 0 ? given + x.rank() : given;
  if (axis < 0 || axis > x.rank()) node.fail(fmt::format("axis {} is out of range", given));
  if (axis == x.rank() - 1) {
    node.give(kFunction(x, axis));
    return;
  }
  std::int64_t rows = 1, columns = 1;
  for (int k = 0; k < x.rank(); ++k) (k < axis ? rows : columns) *= x.dim(k);
  node.give(reshape(kFunction(reshape(x, {rows, columns}), 1), x.shape().vec()));
}
Tensor softmax_along(const Tensor& x, std::int64_t axis) { return softmax(x, axis); }
Tensor log_softmax_along(const Tensor& x, std::int64_t axis) { return log_softmax(x, axis); }
Tensor hardmax_along(const Tensor& x, std::int64_t axis) {
  const Tensor hit = argmax(x, axis, true);
  return cast(eq(iota_beside(x, x.shape(), axis), hit), x.dtype());
}

// --- batch norm

// The file's own training form: with the batch's statistics, the variance biased.
void convert_training_batch_norm(Node& node, const Tensor& x, double eps) {
  IntList axes(static_cast<std::size_t>(x.rank())), sizes(axes.size(), 1);
  std::iota(axes.begin(), axes.end(), 0);
  axes.erase(axes.begin() + 1);
  sizes[1] = x.dim(1);
  const Tensor centre = mean(x, axes, true), centred = x - centre;
  const Tensor variance = mean(square(centred), axes, true);
  node.give(centred * rsqrt(variance + eps) * reshape(node.tensor(1), sizes) +
            reshape(node.tensor(2), sizes));
  const double keep = node.attribute("momentum", 0.9);
  const IntList channels{x.dim(1)};
  node.give(1, node.tensor(3) * keep + reshape(centre, channels) * (1 - keep));
  node.give(2, node.tensor(4) * keep + reshape(variance, channels) * (1 - keep));
}

// Whether the file itself wants the batch's statistics.
bool asks_for_training(const Node& node) {
  if (node.opset() < 7) return node.attribute("is_test", std::int64_t{0}) == 0;
  if (node.opset() < 14) return node.results() > 1;
  return node.attribute("training_mode", std::int64_t{0}) != 0;
}

// Whether running statistics follow the batch's.
bool follows_batches(const Node& node) {
  const ImportOptions& import = node.options();
  if (!import.training) return false;
  return !import.as_exported || asks_for_training(node) || node.is_of_training_call();
}

void convert_batch_norm(Node& node) {
  const Tensor x = node.tensor(0);
  const double eps = node.attribute("epsilon", 1e-5);
  if (x.rank() < 2) node.fail("x needs channels as axis 1, got " + x.type().str());
  if (node.attribute("spatial", std::int64_t{1}) == 0)
    node.unsupported("statistics per position (spatial = 0)");
  const Tensor weight = node.tensor(1), bias = node.tensor(2);
  Followed *const mean = node.followed(3), *const variance = node.followed(4);
  const bool has_states = mean != nullptr && variance != nullptr, training = follows_batches(node);
  if (training && !has_states)
    node.warn(
        fmt::format("its running mean and variance are no f32 or f64 weights of the file: they do "
                    "not follow the "
                    "training{}",
                    asks_for_training(node) ? "" : ", and are used instead of the batch's"));
  if (asks_for_training(node) && !node.options().evaluation && !(training && has_states)) {
    convert_training_batch_norm(node, x, eps);
    return;
  }
  BatchNormResult result{.y = {}, .running_mean = node.tensor(3), .running_var = node.tensor(4)};
  if (training && has_states) {
    const BatchNormOptions options{.momentum = 1 - node.attribute("momentum", 0.9), .eps = eps};
    // A layer that is used twice goes on from what its first use left.
    result = batch_norm_train(x, weight, bias, mean->latest, variance->latest, options);
    mean->latest = result.running_mean;
    variance->latest = result.running_var;
  } else {
    result.y =
        batch_norm_eval(x, weight, bias, result.running_mean, result.running_var, {.eps = eps});
  }
  node.give(result.y);
  node.give(1, result.running_mean);
  node.give(2, result.running_var);
}

// --- norms over trailing axes

// The axes from `axis` on, taken together.
struct Trailing {
  IntList view;        // the axes before, and one for the rest
  IntList inner;       // the sizes of the rest
  IntList statistics;  // the axes before, and ones
};
Trailing trailing(const Node& node, const Shape& shape) {
  const int axis = node.axis(node.attribute("axis", std::int64_t{-1}), shape.rank());
  Trailing t;
  std::int64_t count = 1;
  for (int k = 0; k < shape.rank(); ++k) {
    if (k < axis) t.view.push_back(shape[k]);
    if (k >= axis) t.inner.push_back(shape[k]), count *= shape[k];
    t.statistics.push_back(k < axis ? shape[k] : 1);
  }
  t.view.push_back(count);
  return t;
}
// Weight or bias as one axis; ones in front of the inner axes mean nothing.
Tensor flat_parameter(const Tensor& parameter, const Trailing& t) {
  IntList sizes = parameter.shape().vec();
  while (sizes.size() > t.inner.size() && sizes.front() == 1) sizes.erase(sizes.begin());
  return reshape(broadcast_to(reshape(parameter, sizes), Shape(t.inner)), {t.view.back()});
}

void convert_layer_norm(Node& node) {
  const Tensor x = node.tensor(0);
  const Trailing t = trailing(node, x.shape());
  std::vector<Operand> inputs{reshape(x, t.view), flat_parameter(node.tensor(1), t)};
  if (node.has(2)) inputs.emplace_back(flat_parameter(node.tensor(2), t));
  const std::vector<Tensor> results =
      ops::apply("layer_norm", inputs, {{"eps", node.attribute("epsilon", 1e-5)}});
  node.give(reshape(results[0], x.shape().vec()));
  if (node.wants(1)) node.give(1, reshape(results[1], t.statistics));
  if (node.wants(2)) node.give(2, reshape(results[2], t.statistics));
}

void convert_rms_norm(Node& node) {
  const Tensor x = node.tensor(0);
  const Trailing t = trailing(node, x.shape());
  const Tensor y = rms_norm(reshape(x, t.view), flat_parameter(node.tensor(1), t),
                            {.eps = node.attribute("epsilon", 1e-5)});
  node.give(reshape(y, x.shape().vec()));
}

// --- norms over channels
void convert_instance_norm(Node& node) {
  const Tensor x = node.tensor(0);
  if (x.rank() < 3) node.fail("x needs spatial axes, got " + x.type().str());
  node.give(group_norm(x, x.dim(1), node.tensor(1), node.tensor(2),
                       {.eps = node.attribute("epsilon", 1e-5)}));
}

// Weight and bias are per group in version 18, per channel from 21 on.
void convert_group_norm(Node& node) {
  const Tensor x = node.tensor(0);
  const std::int64_t groups = node.attribute("num_groups", std::int64_t{0});
  if (x.rank() < 2 || groups < 1 || x.dim(1) % groups != 0)
    node.fail(fmt::format("{} groups of the channels of {}", groups, x.type().str()));
  const std::int64_t channels = x.dim(1);
  const auto per_channel = [&](const Tensor& t) {
    if (t.rank() != 1 || t.dim(0) == channels || t.dim(0) != groups) return t;
    return reshape(broadcast_to(reshape(t, {groups, 1}), {groups, channels / groups}), {channels});
  };
  node.give(group_norm(x, groups, per_channel(node.tensor(1)), per_channel(node.tensor(2)),
                       {.eps = node.attribute("epsilon", 1e-5)}));
}

void convert_mean_variance_norm(Node& node) {
  const Tensor x = node.tensor(0);
  const IntList axes = node.integers("axes", {0, 2, 3});
  if (axes.empty()) node.fail("no axes are given");
  const Tensor centred = x - mean(x, axes, true);
  node.give(centred / (sqrt(mean(square(centred), axes, true)) + 1e-9));
}

void convert_lp_norm(Node& node) {
  const Tensor x = node.tensor(0);
  const int axis = node.axis(node.attribute("axis", std::int64_t{-1}), x.rank());
  const std::int64_t p = node.attribute("p", std::int64_t{2});
  if (p != 1 && p != 2) node.fail(fmt::format("p must be 1 or 2, got {}", p));
  const Tensor norm = p == 1 ? sum(abs(x), {axis}, true) : sqrt(sum(square(x), {axis}, true));
  node.give(where(eq(norm, 0), 0, x / norm));
}

// The squares of the neighbouring channels, summed slice by slice.
void convert_local_response_norm(Node& node) {
  const Tensor x = node.tensor(0);
  const std::int64_t size = node.attribute("size", std::int64_t{0});
  if (x.rank() < 2 || size < 1 || size > 4096)
    node.fail(fmt::format("a window of {} channels of {}", size, x.type().str()));
  constexpr std::int64_t kNodeElements = 128;  // what a node of the graph takes, about
  node.spend_elements(2 * size * kNodeElements);
  const double alpha = node.attribute("alpha", 1e-4), beta = node.attribute("beta", 0.75),
               bias = node.attribute("bias", 1.0);
  IntList before(static_cast<std::size_t>(x.rank()), 0), after = before;
  before[1] = (size - 1) / 2;
  after[1] = size - 1 - before[1];
  const Tensor squares = pad(square(x), before, after);
  Tensor total;
  for (std::int64_t k = 0; k < size; ++k) {
    const Tensor piece = slice_axis(squares, 1, k, k + x.dim(1));
    total = total.valid() ? total + piece : piece;
  }
  node.give(x / pow_scalar(total * (alpha / static_cast<double>(size)) + bias, beta));
}

constexpr Adapter kNormAdapters[] = {
    {"Softmax", convert_along_axis<softmax_along>, true, true},
    {"LogSoftmax", convert_along_axis<log_softmax_along>, true, true},
    {"Hardmax", convert_along_axis<hardmax_along>},
    {"BatchNormalization", convert_batch_norm, false, true},
    {"LayerNormalization", convert_layer_norm, false, true},
    {"RMSNormalization", convert_rms_norm, false, true},
    {"InstanceNormalization", convert_instance_norm, false, true},
    {"GroupNormalization", convert_group_norm, false, true},
    {"MeanVarianceNormalization", convert_mean_variance_norm, false, true},
    {"LpNormalization", convert_lp_norm, false, true},
    {"LRN", convert_local_response_norm, false, true},
};

}  // namespace

std::span<const Adapter> norm_adapters() { return kNormAdapters; }

}  // namespace pantala::onnx
