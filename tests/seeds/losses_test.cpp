// clang-format off: expected messages name the line of a call, which must not move.
// Section 5 of the checklist: losses.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "ir/graph_data.h"
#include "pantala/autodiff.h"
#include "pantala/ops.h"
#include "pantala/text.h"
#include "support/errors.h"
#include "support/numbers.h"

namespace pantala::tests::losses_test {
namespace {

// A graph with constants, in double.
struct Loss {
  Graph g;
  Tensor of(const std::vector<double>& values) {
    return of({static_cast<std::int64_t>(values.size())}, values);
  }
  Tensor of(const Shape& shape, const std::vector<double>& values) {
    return g.constant(floats(shape, values, f64));
  }
  Tensor classes(const std::vector<std::int64_t>& values) {
    return g.constant(ints({static_cast<std::int64_t>(values.size())}, values));
  }
  Tensor class_of(std::int64_t value) { return g.constant(ints({}, {value})); }
  std::vector<double> values(const Tensor& t) const { return value_of(g, t); }
  double value(const Tensor& t) const { return values(t).at(0); }
  std::vector<double> gradient(const Tensor& loss, const Tensor& wrt) const {
    return gradients_of(g, loss, {wrt})[0];
  }
};

void expect_relative(double actual, double expected, double tolerance = 1e-6) {
  EXPECT_NEAR(actual, expected, tolerance * std::fabs(expected));
}

using Pair = std::function<Tensor(const Tensor&, const Tensor&)>;
struct NamedLoss {
  std::string name;
  Pair loss;
};
std::vector<NamedLoss> broadcasting_losses() {
  return {
      {"mse_loss", [](const Tensor& p, const Tensor& t) { return mse_loss(p, t); }},
      {"rmse_loss", [](const Tensor& p, const Tensor& t) { return rmse_loss(p, t); }},
      {"l1_loss", [](const Tensor& p, const Tensor& t) { return l1_loss(p, t); }},
      {"huber_loss", [](const Tensor& p, const Tensor& t) { return huber_loss(p, t); }},
      {"smooth_l1_loss", [](const Tensor& p, const Tensor& t) { return smooth_l1_loss(p, t); }},
      {"bce_with_logits", [](const Tensor& p, const Tensor& t) { return bce_with_logits(p, t); }},
      {"bce", [](const Tensor& p, const Tensor& t) { return bce(p, t); }}};
}

TEST(Losses, L01_a_call_only_builds_nodes_and_gives_a_scalar_mean) {
  Graph g;
  const Tensor p = g.input("p", {2, 3}), t = g.input("t", {2, 3}),
               labels = g.input("labels", {2}, i64);
  std::vector<Tensor> losses;
  for (const NamedLoss& l : broadcasting_losses()) losses.push_back(l.loss(p, t));
  for (const Tensor& l : {cross_entropy(p, labels), cross_entropy(p, t), nll_loss(p, labels),
                          kl_div_with_logits(p, t)})
    losses.push_back(l);
  // Inputs have no values yet: nothing was computed, only nodes were added.
  for (const Tensor& l : losses) {
    EXPECT_EQ(l.type().str(), "f32[]");
    EXPECT_GT(l.id().node, labels.id().node);
    EXPECT_EQ(l.graph(), g.data());
  }
  EXPECT_GT(g.size(), losses.size());
  EXPECT_THROW(value_of(g, losses[0]), TypeError);
  // A mean: the sum of the elements divided by their number.
  const ref::Bindings bindings{{"p", floats({2, 3}, {1, 2, 3, 4, 5, 6})},
                               {"t", floats({2, 3}, {0, 0, 0, 0, 0, 0})}};
  expect_relative(value_of(g, losses[0], bindings)[0], 91.0 / 6);
}

TEST(Losses, L02_mse_rmse_and_l1) {
  Loss s;
  const Tensor p = s.of({1, 2, 3}), t = s.of({1, 1, 5});
  expect_relative(s.value(mse_loss(p, t)), 5.0 / 3);
  expect_relative(s.value(mse_loss(p, t)), 1.6666667);
  expect_relative(s.value(rmse_loss(p, t)), 1.2909944);
  expect_relative(s.value(l1_loss(p, t)), 1);
}

TEST(Losses, L03_huber_and_smooth_l1) {
  Loss s;
  const Tensor p = s.of({1, 2, 3}), t = s.of({1, 1, 5});
  expect_relative(s.value(huber_loss(p, t)), 0.6666667);
  expect_relative(s.value(huber_loss(p, t, {.delta = 0.5})), 0.4166667);
  expect_relative(s.value(smooth_l1_loss(p, t, {.delta = 0.5})), 0.8333333);
  for (const double delta : {0.01, 0.5, 1.0, 1.5, 7.0})
    expect_relative(s.value(smooth_l1_loss(p, t, {.delta = delta})),
                    s.value(huber_loss(p, t, {.delta = delta})) / delta);
}

TEST(Losses, L04_huber_is_a_square_below_delta_and_a_line_from_there) {
  constexpr double delta = 0.75;
  Loss s;
  const std::vector<double> errors{-3, -0.75, -0.5, 0, 0.25, 0.7499, 0.75, 0.7501, 2};
  const Tensor e = s.of(errors), zero = s.of(std::vector<double>(errors.size(), 0));
  const Tensor elements = huber_loss(e, zero, {.delta = delta, .reduction = Reduction::none});
  const std::vector<double> values = s.values(elements), slopes = s.gradient(sum(elements), e);
  for (std::size_t k = 0; k < errors.size(); ++k) {
    const double size = std::fabs(errors[k]);
    expect_relative(values[k], size < delta ? 0.5 * size * size : delta * (size - delta / 2));
    expect_relative(slopes[k], size < delta ? errors[k] : std::copysign(delta, errors[k]));
  }
  // At delta both formulas have one value and one slope.
  EXPECT_NEAR(values[6], 0.5 * delta * delta, 1e-12);
  EXPECT_NEAR(slopes[6], delta, 1e-12);
  EXPECT_NEAR(slopes[1], -delta, 1e-12);
}

TEST(Losses, L05_delta_is_one_by_default_and_must_be_positive) {
  Loss s;
  const Tensor p = s.of({1, 2, 3}), t = s.of({1, 1, 5});
  EXPECT_EQ(HuberOptions{}.delta, 1.0);
  EXPECT_EQ(s.value(huber_loss(p, t)), s.value(huber_loss(p, t, {.delta = 1.0})));
  EXPECT_EQ(s.value(smooth_l1_loss(p, t)), s.value(smooth_l1_loss(p, t, {.delta = 1.0})));
  const double inf = std::numeric_limits<double>::infinity(),
               nan = std::numeric_limits<double>::quiet_NaN();
  for (const double bad : {-1.0, 0.0, inf, -inf, nan})
    EXPECT_THROW(huber_loss(p, t, {.delta = bad}), TypeError) << bad;
  for (const double bad : {-1.0, inf, -inf, nan})
    EXPECT_THROW(smooth_l1_loss(p, t, {.delta = bad}), TypeError) << bad;
  const int line = __LINE__ + 1;
  const std::string message = message_of<TypeError>([&] { huber_loss(p, t, {.delta = -2}); });
  EXPECT_EQ(
      message,
      fmt::format("huber_loss (losses_test.cpp:{}): delta must be positive and finite, got -2",
                  line));
  for (const Reduction r : {Reduction::mean, Reduction::sum, Reduction::none})
    EXPECT_EQ(s.values(smooth_l1_loss(p, t, {.delta = 0, .reduction = r})),
              s.values(l1_loss(p, t, {.reduction = r})));
}

TEST(Losses, L06_no_error_gives_zero_gradient) {
  Loss s;
  const Tensor p = s.of({1, 2, 3}), t = s.of({1, 2, 3});
  const std::vector<double> zeros(3, 0);
  EXPECT_EQ(s.value(rmse_loss(p, t)), 0);
  EXPECT_EQ(s.value(l1_loss(p, t)), 0);
  // p and t are one value of the graph here: a variable of its own shows the gradient.
  Graph g;
  const Tensor x = g.parameter("x", {3}, init::zeros(), f64);
  const ref::Bindings bindings{{"x", floats({3}, {1, 2, 3}, f64)}};
  const Tensor target = g.constant(floats({3}, {1, 2, 3}, f64));
  EXPECT_EQ(value_of(g, rmse_loss(x, target), bindings)[0], 0);
  EXPECT_EQ(gradients_of(g, rmse_loss(x, target), {x}, bindings)[0], zeros);
  EXPECT_EQ(gradients_of(g, l1_loss(x, target), {x}, bindings)[0], zeros);
}

TEST(Losses, L07_cross_entropy_of_classes_and_probabilities) {
  Loss s;
  const Tensor logits = s.of({1, 2, 3}), rows = s.of({1, 3}, {1, 2, 3});
  expect_relative(s.value(cross_entropy(logits, s.class_of(2))), 0.4076060);
  expect_relative(s.value(cross_entropy(rows, s.classes({2}))), 0.4076060);
  expect_relative(s.value(cross_entropy(logits, s.of({0, 0, 1}))), 0.4076060);
  expect_relative(s.value(cross_entropy(rows, s.of({1, 3}, {0, 0, 1}))), 0.4076060);
  expect_relative(s.value(cross_entropy(logits, s.of({0.2, 0.3, 0.5}))), 1.1076060);
  expect_relative(s.value(cross_entropy(rows, s.of({1, 3}, {0.2, 0.3, 0.5}))), 1.1076060);
}

TEST(Losses, L08_classes_are_summed_and_rows_averaged) {
  Loss s;
  const Tensor one = s.of({1, 3}, {1, 2, 3}), two = s.of({2, 3}, {1, 2, 3, 1, 2, 3});
  expect_relative(s.value(cross_entropy(two, s.classes({2, 2}))),
                  s.value(cross_entropy(one, s.classes({2}))), 1e-12);
  expect_relative(s.value(cross_entropy(two, s.of({2, 3}, {0.2, 0.3, 0.5, 0.2, 0.3, 0.5}))),
                  s.value(cross_entropy(one, s.of({1, 3}, {0.2, 0.3, 0.5}))), 1e-12);
  expect_relative(s.value(kl_div_with_logits(two, s.of({2, 3}, {0.2, 0.3, 0.5, 0.2, 0.3, 0.5}))),
                  s.value(kl_div_with_logits(one, s.of({1, 3}, {0.2, 0.3, 0.5}))), 1e-12);
  // A uniform row of C classes costs log(C), not log(C) / C.
  expect_relative(s.value(cross_entropy(s.of({1, 4}, {5, 5, 5, 5}), s.classes({1}))), std::log(4.0),
                  1e-12);
  expect_relative(
      s.value(cross_entropy(s.of({1, 4}, {5, 5, 5, 5}), s.of({1, 4}, {0.25, 0.25, 0.25, 0.25}))),
      std::log(4.0), 1e-12);
}

TEST(Losses, L09_shapes_of_targets_and_classes_out_of_range) {
  Loss s;
  const Tensor logits = s.of({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(cross_entropy(logits, s.classes({0, 1})).rank(), 0);
  EXPECT_EQ(cross_entropy(logits, s.of({2, 3}, {0, 0, 1, 0, 1, 0})).rank(), 0);
  const Tensor three = s.classes({0, 1, 2}), flat = s.of({0.5, 0.5});
  const int line = __LINE__ + 1;
  const std::string classes = message_of<TypeError>([&] { cross_entropy(logits, three); });
  const std::string shares = message_of<TypeError>([&] { cross_entropy(logits, flat); });
  EXPECT_EQ(classes,
            fmt::format("cross_entropy (losses_test.cpp:{}): target must have shape [2], that of "
                        "logits without class axis 1: logits f64[2,3], target i64[3]",
                        line));
  EXPECT_EQ(shares,
            fmt::format("cross_entropy_probabilities (losses_test.cpp:{}): probability targets "
                        "have the shape of the logits: logits f64[2,3], target f64[2]",
                        line + 1));
  for (const std::int64_t bad : {3, -1, 100}) {
    EXPECT_THROW(s.value(cross_entropy(logits, s.classes({0, bad}))), ValueError) << bad;
    EXPECT_THROW(s.value(nll_loss(logits, s.classes({0, bad}))), ValueError) << bad;
    // Ignored rows do not hide a class that is out of range.
    EXPECT_THROW(s.value(cross_entropy(logits, s.classes({-100, bad}))), ValueError) << bad;
  }
}

TEST(Losses, L10_above_two_axes_classes_are_axis_one) {
  Loss s;
  // [batch 2, classes 3, positions 2] against the same rows one by one.
  const std::vector<double> values{0.5, -1, 2, 0.25, -0.75, 3, 1, 1.5, -2, 0, 0.125, -3};
  const std::vector<std::int64_t> targets{2, 0, 1, 2};
  std::vector<double> rows;
  for (const std::size_t b : {0, 1})
    for (const std::size_t p : {0, 1})
      for (const std::size_t c : {0, 1, 2}) rows.push_back(values[b * 6 + c * 2 + p]);
  const Tensor spatial = s.of({2, 3, 2}, values), flat = s.of({4, 3}, rows),
               labels = s.g.constant(ints({2, 2}, targets));
  expect_relative(s.value(cross_entropy(spatial, labels)),
                  s.value(cross_entropy(flat, s.classes(targets))), 1e-12);
  expect_close(s.values(cross_entropy(spatial, labels, {.reduction = Reduction::none})),
               s.values(cross_entropy(flat, s.classes(targets), {.reduction = Reduction::none})),
               1e-12);
  expect_relative(s.value(nll_loss(log_softmax(spatial, 1), labels)),
                  s.value(cross_entropy(spatial, labels)), 1e-12);
  const Tensor shares = softmax(s.of({2, 3, 2}, rows), 1);
  expect_relative(s.value(cross_entropy(spatial, shares)),
                  -s.value(sum(shares * log_softmax(spatial, 1))) / 4, 1e-12);
  EXPECT_THROW(cross_entropy(spatial, s.g.constant(ints({2, 3}, {0, 0, 0, 0, 0, 0}))), TypeError);
}

TEST(Losses, L11_a_shift_of_all_logits_changes_nothing) {
  Loss s;
  const std::vector<double> values{1, 2, 3, -0.5, 4, 0.25};
  std::vector<double> moved = values;
  for (double& v : moved) v += 1e4;
  const Tensor x = s.of({2, 3}, values), y = s.of({2, 3}, moved), labels = s.classes({2, 0}),
               shares = s.of({2, 3}, {0.2, 0.3, 0.5, 0, 1, 0});
  const std::vector<Pair> losses{
      [](const Tensor& l, const Tensor& t) { return cross_entropy(l, t); },
      [](const Tensor& l, const Tensor& t) { return kl_div_with_logits(l, t); }};
  const auto compare = [&](const Pair& loss, const Tensor& target) {
    EXPECT_NEAR(s.value(loss(y, target)), s.value(loss(x, target)), 1e-6);
    const std::vector<double> a = s.gradient(loss(x, target), x),
                              b = s.gradient(loss(y, target), y);
    for (std::size_t k = 0; k < a.size(); ++k) EXPECT_NEAR(b[k], a[k], 1e-6);
  };
  compare(losses[0], labels);
  compare(losses[0], shares);
  compare(losses[1], shares);
  // Rows whose logits lie far apart stay finite too.
  const Tensor far = s.of({2, 3}, {1e4, -1e4, 0, -1e4, 1e4, 0});
  for (const Tensor& loss :
       {cross_entropy(far, labels), cross_entropy(far, shares), kl_div_with_logits(far, shares)}) {
    EXPECT_TRUE(std::isfinite(s.value(loss)));
    for (const double d : s.gradient(loss, far)) EXPECT_TRUE(std::isfinite(d));
  }
}

TEST(Losses, L12_kl_div_sums_classes_and_averages_rows) {
  Loss s;
  expect_relative(s.value(kl_div_with_logits(s.of({1, 2, 3}), s.of({0.2, 0.3, 0.5}))), 0.0779530);
  const Tensor logits = s.of({2, 3}, {1, 2, 3, 3, 1, 0}),
               target = s.of({2, 3}, {0.2, 0.3, 0.5, 0.6, 0.3, 0.1});
  const std::vector<double> rows =
      s.values(kl_div_with_logits(logits, target, {.reduction = Reduction::none}));
  ASSERT_EQ(rows.size(), 2u);
  expect_relative(rows[0], 0.0779530);
  expect_relative(s.value(kl_div_with_logits(logits, target)), (rows[0] + rows[1]) / 2, 1e-12);
}

TEST(Losses, L13_zeros_in_the_target_add_nothing) {
  Loss s;
  const Tensor logits = s.of({1, 2, 3}), target = s.of({0, 0, 1});
  expect_relative(s.value(kl_div_with_logits(logits, target)), 0.4076060);
  for (const Tensor& wrt : {logits, target})
    for (const double d : s.gradient(kl_div_with_logits(logits, target), wrt))
      EXPECT_TRUE(std::isfinite(d));
}

TEST(Losses, L14_kl_is_zero_at_its_minimum) {
  Loss s;
  const Tensor logits = s.of({2, 3}, {1, 2, 3, -1, 0.5, 0}),
               target = s.of({2, 3}, s.values(softmax(logits, -1)));
  EXPECT_NEAR(s.value(kl_div_with_logits(logits, target)), 0, 1e-12);
  for (const double d : s.gradient(kl_div_with_logits(logits, target), logits))
    EXPECT_NEAR(d, 0, 1e-12);
}

TEST(Losses, L15_bce_with_logits) {
  Loss s;
  const std::vector<std::array<double, 3>> cases{
      {0, 0.5, 0.6931472}, {2, 1, 0.1269280}, {2, 0, 2.1269280}, {0.3, 0.7, 0.6443552}};
  std::vector<double> logits, targets;
  double total = 0;
  for (const auto& [logit, target, expected] : cases) {
    expect_relative(s.value(bce_with_logits(s.of({logit}), s.of({target}))), expected);
    logits.push_back(logit), targets.push_back(target), total += expected;
  }
  expect_relative(s.value(bce_with_logits(s.of({2, 2}, logits), s.of({2, 2}, targets))), total / 4);
}

TEST(Losses, L16_bce_with_large_logits_stays_finite) {
  Loss s;
  const Tensor x = s.of({-1e4, 1e4}), t = s.of({1, 1});
  const std::vector<double> values =
      s.values(bce_with_logits(x, t, {.reduction = Reduction::none}));
  expect_relative(values[0], 1e4);
  EXPECT_EQ(values[1], 0);
  EXPECT_EQ(s.gradient(bce_with_logits(x, t, {.reduction = Reduction::sum}), x),
            (std::vector<double>{-1, 0}));
  for (const double d : s.gradient(bce_with_logits(x, t), t)) EXPECT_TRUE(std::isfinite(d));
}

TEST(Losses, L17_prediction_and_target_broadcast_right_aligned) {
  Loss s;
  const Tensor p = s.of({2, 3}, {0.1, 0.2, 0.3, 0.4, 0.5, 0.6}), t = s.of({0.5, 0.25, 0.75}),
               wide = s.of({2, 3}, {0.5, 0.25, 0.75, 0.5, 0.25, 0.75});
  const Tensor misfit = s.of({2}, {1, 2});
  for (const NamedLoss& l : broadcasting_losses()) {
    expect_relative(s.value(l.loss(p, t)), s.value(l.loss(p, wide)), 1e-12);
    expect_relative(s.value(l.loss(t, p)), s.value(l.loss(wide, p)), 1e-12);
    const std::string message = message_of<TypeError>([&] { l.loss(p, misfit); });
    EXPECT_THAT(message, ::testing::StartsWith(l.name + " (losses_test.cpp:"));
    EXPECT_THAT(message, ::testing::HasSubstr(" f64[2,3], target f64[2]"));
  }
  EXPECT_EQ(mse_loss(p, t, {.reduction = Reduction::none}).shape(), (Shape{2, 3}));
  const int line = __LINE__ + 1;
  const std::string message = message_of<TypeError>([&] { mse_loss(p, misfit); });
  EXPECT_EQ(message, fmt::format("mse_loss (losses_test.cpp:{}): shapes do not broadcast: "
                                 "prediction f64[2,3], target f64[2]",
                                 line));
}

TEST(Losses, L18_reductions) {
  Loss s;
  const Tensor p = s.of({2, 3}, {0.1, 0.2, 0.3, 0.4, 0.5, 0.6}),
               t = s.of({2, 3}, {0.5, 0.25, 0.25, 0.125, 0.125, 0.75}), labels = s.classes({2, 0});
  using Reduced = std::function<Tensor(Reduction)>;
  const auto check = [&](const Reduced& loss, const Shape& elements) {
    const Tensor none = loss(Reduction::none);
    EXPECT_EQ(none.shape(), elements);
    double total = 0;
    for (const double v : s.values(none)) total += v;
    expect_relative(s.value(loss(Reduction::sum)), total, 1e-12);
    expect_relative(s.value(loss(Reduction::mean)) * static_cast<double>(elements.numel()), total,
                    1e-12);
  };
  check([&](Reduction r) { return mse_loss(p, t, {.reduction = r}); }, {2, 3});
  check([&](Reduction r) { return l1_loss(p, t, {.reduction = r}); }, {2, 3});
  check([&](Reduction r) { return huber_loss(p, t, {.delta = 0.2, .reduction = r}); }, {2, 3});
  check([&](Reduction r) { return smooth_l1_loss(p, t, {.delta = 0.2, .reduction = r}); }, {2, 3});
  check([&](Reduction r) { return bce_with_logits(p, t, {.reduction = r}); }, {2, 3});
  check([&](Reduction r) { return bce(p, t, {.reduction = r}); }, {2, 3});
  check([&](Reduction r) { return cross_entropy(p, labels, {.reduction = r}); }, {2});
  check([&](Reduction r) { return cross_entropy(p, t, {.reduction = r}); }, {2});
  check([&](Reduction r) { return nll_loss(p, labels, {.reduction = r}); }, {2});
  check([&](Reduction r) { return kl_div_with_logits(p, t, {.reduction = r}); }, {2});
}

}  // namespace
}  // namespace pantala::tests::losses_test
