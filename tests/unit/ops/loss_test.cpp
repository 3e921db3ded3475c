// Losses against numbers computed by PyTorch in double precision, and the bugs of earlier systems
// that must not come back.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ir/graph_data.h"
#include "ops/table.h"
#include "pantala/autodiff.h"
#include "pantala/ops.h"
#include "support/errors.h"
#include "support/numbers.h"

namespace pantala::tests::loss_test {
namespace {

constexpr double kTolerance = 1e-9;

std::size_t count_nodes(const Graph& graph, std::string_view op) {
  std::size_t count = 0;
  for (const ir::Node& node : graph.data()->nodes()) count += node.op->name == op;
  return count;
}

// Four rows of three classes.
class LossOps : public ::testing::Test {
 protected:
  Tensor of(const Shape& shape, const std::vector<double>& values) {
    return g.constant(floats(shape, values, f64));
  }
  Tensor classes(const std::vector<std::int64_t>& values) {
    return g.constant(ints({static_cast<std::int64_t>(values.size())}, values));
  }
  std::vector<double> value(const Tensor& t) const { return value_of(g, t); }
  std::vector<double> gradient(const Tensor& loss, const Tensor& wrt) const {
    return gradients_of(g, loss, {wrt})[0];
  }
  void expect(const Tensor& loss, const std::vector<double>& values, const Tensor& wrt,
              const std::vector<double>& gradients) {
    expect_close(value(loss), values, kTolerance);
    expect_close(gradient(loss.rank() == 0 ? loss : sum(loss), wrt), gradients, kTolerance);
  }

  Graph g;
  const Tensor x =
      of({4, 3}, {0.5, -1.25, 2.0, 1.5, 0.25, -0.75, -2.0, 1.0, 0.0, 3.0, -0.5, 0.125});
  const Tensor labels = classes({2, 0, 1, 1});
  const Tensor weight = of({3}, {0.5, 1.5, 2.0});
};

// --- cross entropy against PyTorch

TEST_F(LossOps, label_smoothing_with_class_weights) {
  expect(cross_entropy(x, labels, {.label_smoothing = 0.2, .weight = weight}), {1.319101362362793},
         x,
         {0.053951092109193216, -0.0077533487376943, -0.04619774337149893, 0.008295798927401813,
          0.006768073211836556, -0.015063872139238361, 0.003304467795217869, -0.04826109964410536,
          0.04495663184888754, 0.23935016882886082, -0.22895287309833087, -0.010397295730529981});
  expect(cross_entropy(x, labels,
                       {.reduction = Reduction::sum, .label_smoothing = 0.3, .weight = weight}),
         {7.618237441289159}, x,
         {0.2682763277933997, -0.09469186741241442, -0.17358446038098532, 0.13883025586329864,
          0.004377452998238647, -0.14320770886153736, 0.0009225890910426037, -0.17719245658755017,
          0.1762698674965077, 1.2844210884614755, -1.159703974744901, -0.12471711371657496});
}

TEST_F(LossOps, ignored_rows_with_label_smoothing_and_class_weights) {
  expect(cross_entropy(x, labels, {.label_smoothing = 0.2, .ignore_index = 0, .weight = weight}),
         {1.3219218173447755}, x,
         {0.05934620132011254, -0.008528683611463729, -0.050817517708648806, 0, 0, 0,
          0.0036349145747396547, -0.05308720960851592, 0.04945229503377628, 0.26328518571174686,
          -0.25184816040816393, -0.01143702530358298});
  expect(cross_entropy(x, labels,
                       {.reduction = Reduction::none,
                        .label_smoothing = 0.2,
                        .ignore_index = 0,
                        .weight = weight}),
         {0.809227701790461, 0, 0.7452179179266732, 5.055163467006744}, x,
         {0.2967310066005627, -0.042643418057318666, -0.2540875885432441, 0, 0, 0,
          0.018174572873698284, -0.2654360480425796, 0.24726147516888147, 1.3164259285587345,
          -1.25924080204082, -0.05718512651791489});
  expect(cross_entropy(x, labels, {.label_smoothing = 0.2, .ignore_index = 1}),
         {0.5566472962546284}, x,
         {0.055076757720388815, -0.017969963170115115, -0.037106794550273714, -0.07411316275780089,
          0.06958496866549244, 0.004528194092308424, 0, 0, 0, 0, 0, 0});
}

// As in PyTorch: 0/0 for the mean, 0 for the sum, and no gradient in either.
TEST_F(LossOps, all_rows_ignored_is_nan_with_zero_gradient) {
  const Tensor ones = classes({1, 1, 1, 1});
  EXPECT_TRUE(std::isnan(value(cross_entropy(x, ones, {.ignore_index = 1}))[0]));
  EXPECT_EQ(gradient(cross_entropy(x, ones, {.ignore_index = 1}), x), std::vector<double>(12, 0));
  EXPECT_EQ(value(cross_entropy(x, ones, {.reduction = Reduction::sum, .ignore_index = 1}))[0], 0);
}

TEST_F(LossOps, probability_targets_with_label_smoothing_and_class_weights) {
  const Tensor target = of({4, 3}, {0.2, 0.3, 0.5, 0.7, 0.1, 0.2, 0.0, 1.0, 0.0, 0.25, 0.25, 0.5});
  expect(cross_entropy(x, target, {.label_smoothing = 0.2, .weight = weight}), {2.1467822035222355},
         x,
         {0.03826893526047068, -0.10342626114370894, 0.06515732588323823, 0.0988819508172627,
          -0.004226971013912616, -0.09465497980335008, 0.004543643218424569, -0.06635901201064488,
          0.061815368792220354, 0.30410648213968355, -0.08981020051020491, -0.21429628162947872});
}

TEST_F(LossOps, classes_on_axis_one_of_four) {
  const Tensor images =
      of({2, 3, 2, 1}, {0, 0.37, 0.74, 1.11, 0.18, 0.55, 0.92, 1.29, 0.36, 0.73, 1.1, 0.17});
  expect(cross_entropy(images, g.constant(ints({2, 2, 1}, {0, 2, 1, 2})),
                       {.label_smoothing = 0.1, .ignore_index = 0, .weight = weight}),
         {1.4697059340185987}, images,
         {0, 0.07884778552971457, 0, 0.16252028458094653, 0, -0.24136807011066105,
          0.09438856534543631, 0.18222251147014404, -0.19889891393933753, 0.09672717765524944,
          0.10451034859390125, -0.2789496891253935});
  std::vector<double> cosines;
  for (int k = 0; k < 12; ++k) cosines.push_back(std::cos(k));
  expect(
      cross_entropy(images, softmax(of({2, 3, 2, 1}, cosines), 1)), {1.189849628622109}, images,
      {-0.11610542613287114, -0.06738840376577783, 0.07974851674493821, 0.09485772777934862,
       0.03635690938793291, -0.027469324013570773, -0.07676214783520746, -0.018686349987434625,
       -0.0037145820173119376, 0.046797743917756804, 0.08047672985251936, -0.028111393930322175});
}

TEST_F(LossOps, nll_loss_with_weights_and_an_ignored_class) {
  expect(nll_loss(x, labels, {.ignore_index = 2, .weight = weight}), {-0.42857142857142855}, x,
         {0, 0, 0, -0.14285714285714285, 0, 0, 0, -0.42857142857142855, 0, 0, -0.42857142857142855,
          0});
}

// Targets of any integer type are the same targets; -100 is no byte, so no byte is ignored by
// default.
TEST_F(LossOps, integer_types_of_targets) {
  const double expected = value(cross_entropy(x, labels, {.label_smoothing = 0.1}))[0];
  for (const DType dtype : {i32, u8}) {
    const Tensor other = g.constant(ints({4}, {2, 0, 1, 1}, dtype));
    EXPECT_EQ(value(cross_entropy(x, other, {.label_smoothing = 0.1}))[0], expected);
    EXPECT_EQ(gradient(cross_entropy(x, other), x), gradient(cross_entropy(x, labels), x));
  }
  const Tensor byte = g.constant(ints({1}, {156}, u8)),
               wide = of({1, 300}, std::vector<double>(300, 0));
  EXPECT_NEAR(value(cross_entropy(wide, byte))[0], std::log(300.0), 1e-12);
}

TEST_F(LossOps, wrong_attributes_and_targets_are_type_errors) {
  EXPECT_THROW(cross_entropy(x, labels, {.label_smoothing = 1.5}), TypeError);
  EXPECT_THROW(cross_entropy(x, labels, {.label_smoothing = NAN}), TypeError);
  EXPECT_THROW(cross_entropy(x, labels, {.ignore_index = INT64_MIN}), TypeError);
  EXPECT_THROW(cross_entropy(x, x, {.ignore_index = 1}), TypeError);
  EXPECT_THROW(cross_entropy(x, labels, {.weight = x}), TypeError);
  EXPECT_THROW(cross_entropy(x, gt(x, 0.0)), TypeError);
  EXPECT_THROW(cross_entropy(of({}, {1}), labels), TypeError);
  EXPECT_THROW(bce_with_logits(x, x, {.weight = of({2, 4, 3}, std::vector<double>(24, 1))}),
               TypeError);
  EXPECT_THROW(kl_div_with_logits(x, of({3}, {1, 2, 3})), TypeError);
  const std::string message = message_of<TypeError>(
      [&] { ops::apply("mse_loss", {x, x}, {{"reduction", std::string("average")}}); });
  EXPECT_EQ(message, "attribute reduction must be one of mean, sum, none, got 'average'");
}

// --- earlier systems' bugs

TEST_F(LossOps, cross_entropy_in_mid_graph_passes_each_rows_upstream_gradient) {
  const Tensor rows = cross_entropy(x, labels, {.reduction = Reduction::none});
  expect(sum(rows * rows * of({4}, {1, -2, 3, 0.5})), {6.620033801167095}, x,
         {0.08226452282859249, 0.014295430537993682, -0.09655995336658618, 0.3724162683815407,
          -0.27225810782169957, -0.10015816055984111, 0.07354181669892514, -0.6169464259045577,
          0.5434046092056327, 3.297461263488772, -3.4834912981380572, 0.18603003464928447});
  expect(exp(cross_entropy(x, labels)) * -3.0, {-9.229967164616557}, x,
         {-0.40801111872330775, -0.07090170107217693, 0.47891281979548467, 0.6496966015140776,
          -0.47496627404362624, -0.17473032747045134, -0.08103686642199734, 0.6798228184956849,
          -0.5987859520736878, -2.123562556943329, 2.2433657584008424, -0.11980320145751298});
}

TEST_F(LossOps, bce_of_any_size_with_logits_of_ten_thousand) {
  const Tensor logits = of({6}, {1e4, -1e4, 1e4, -1e4, 0.3, -2}),
               target = of({6}, {1, 1, 0, 0, 0.7, 0.2});
  const Tensor pos_weight = of({}, {3}), each = of({6}, {1, 2, 0.5, 1, 2, 3});
  expect(bce_with_logits(logits, target), {3333.5285472092523}, logits,
         {0, -0.16666666666666666, 0.16666666666666666, 0, -0.02092624719805682,
          -0.01346617966298041});
  expect(bce_with_logits(logits, target, {.pos_weight = pos_weight}), {6667.133025300364}, logits,
         {0, -0.5, 0.16666666666666666, 0, -0.12022299327533637, -0.07218598486150592});
  expect(bce_with_logits(logits, target, {.weight = each, .pos_weight = pos_weight}),
         {10834.495667136638}, logits,
         {0, -1, 0.08333333333333333, 0, -0.24044598655067273, -0.21655795458451776});
  for (const std::int64_t size : {1, 2, 7, 64, 1000}) {
    const auto n = static_cast<std::size_t>(size);
    const Tensor large = of({size}, std::vector<double>(n, -1e4)),
                 ones = of({size}, std::vector<double>(n, 1));
    EXPECT_NEAR(value(bce_with_logits(large, ones))[0], 1e4, 1e-8);
    expect_close(gradient(bce_with_logits(large, ones), large),
                 std::vector<double>(n, -1.0 / static_cast<double>(size)), kTolerance);
  }
}

TEST_F(LossOps, bce_of_certain_probabilities_is_finite) {
  const Tensor p = of({6}, {0, 1, 0, 1, 0.25, 0.9}), target = of({6}, {1, 1, 0, 0, 0.7, 0.2}),
               each = of({6}, {1, 2, 0.5, 1, 2, 3});
  // PyTorch's bound 1e-12 is an f32 number, hence the wider tolerance.
  const Tensor loss = bce(p, target, {.weight = each});
  expect_close(value(loss), {34.61714031360322}, kTolerance);
  expect_close(gradient(loss, p),
               {-166666667332.63382, 0, 0, 166666667332.63382, -0.8, 3.8888888888888893}, 1e-7);
  for (const double d : gradient(loss, target)) EXPECT_TRUE(std::isfinite(d));
}

TEST_F(LossOps, kl_with_zeros_in_the_target_is_not_nan) {
  // The logits of absent classes may even be masked out.
  const Tensor logits = of({2, 3}, {1, 2, 3, 0, -INFINITY, 0}),
               target = of({2, 3}, {0, 0, 1, 0.5, 0, 0.5});
  const std::vector<double> rows =
      value(kl_div_with_logits(logits, target, {.reduction = Reduction::none}));
  EXPECT_NEAR(rows[0], 0.40760596444438, 1e-12);
  EXPECT_NEAR(rows[1], 0, 1e-12);
  for (const Tensor& wrt : {logits, target})
    for (const double d : gradient(kl_div_with_logits(logits, target), wrt))
      EXPECT_TRUE(std::isfinite(d));
  EXPECT_EQ(value(kl_div_with_logits(of({1, 2}, {1, 2}), of({1, 2}, {0, 0})))[0], 0);
}

TEST_F(LossOps, rmse_gradient_at_zero_error_is_zero) {
  const Tensor p = g.parameter("p", {3}, init::constant(2), f64), target = of({3}, {2, 2, 2});
  for (const Tensor& wrt : {p, target})
    EXPECT_EQ(gradients_of(g, rmse_loss(p, target), {wrt})[0], std::vector<double>(3, 0));
  const Gradients once = differentiate(g, rmse_loss(p, target) + mse_loss(p, target), {p});
  const Gradients twice = differentiate(once.graph, sum(once.gradients[0]), {once.at(p)});
  expect_close(value_of(twice.graph, twice.gradients[0]), std::vector<double>(3, 2.0 / 3),
               kTolerance);
}

TEST_F(LossOps, losses_of_huge_errors_have_finite_gradients) {
  const Tensor p = g.parameter("p", {2}, init::constant(1e200), f64);
  EXPECT_EQ(gradients_of(g, huber_loss(p, 0.0), {p})[0], std::vector<double>(2, 0.5));
  EXPECT_EQ(gradients_of(g, smooth_l1_loss(p, 0.0, {.delta = 0.25}), {p})[0],
            std::vector<double>(2, 0.5));
}

// --- structure

TEST_F(LossOps, the_gradient_of_a_mean_over_classes_is_one_node) {
  const Tensor logits = g.parameter("logits", {4, 3}, init::zeros(), f64);
  const Gradients d = differentiate(
      g, cross_entropy(logits, labels, {.label_smoothing = 0.1, .weight = weight}), {logits});
  EXPECT_EQ(count_nodes(d.graph, "softmax_cross_entropy"), 1u);
  EXPECT_EQ(count_nodes(d.graph, "softmax_cross_entropy_grad"), 1u);
  for (const std::string_view op : {"gather", "one_hot", "exp", "scatter_add_elements"})
    EXPECT_EQ(count_nodes(d.graph, op), 0u) << op;
}

TEST_F(LossOps, parts_of_a_weighted_mean) {
  const Tensor loss = cross_entropy(x, labels, {.ignore_index = 0, .weight = weight});
  const LossParts parts = loss_parts(loss);
  EXPECT_EQ(parts.weight.type(), loss.type());
  EXPECT_EQ(value(parts.weight)[0], 5);  // 2 + 1.5 + 1.5, one row ignored
  EXPECT_NEAR(
      value(parts.sum)[0],
      value(cross_entropy(x, labels,
                          {.reduction = Reduction::sum, .ignore_index = 0, .weight = weight}))[0],
      1e-12);
}

TEST_F(LossOps, parts_of_means_and_of_anything_else) {
  for (const Tensor& loss : {mse_loss(x, 0.0), l1_loss(x, 0.0), huber_loss(x, 0.0),
                             bce_with_logits(x, 0.5), mean(square(x))}) {
    const LossParts parts = loss_parts(loss);
    EXPECT_EQ(parts.sum.type(), loss.type());
    EXPECT_EQ(parts.weight.type(), loss.type());
    EXPECT_EQ(value(parts.weight)[0], 12);
    EXPECT_NEAR(value(parts.sum)[0], 12 * value(loss)[0], 1e-12);
  }
  for (const Tensor& loss : {kl_div_with_logits(x, softmax(x)), cross_entropy(x, softmax(x)),
                             cross_entropy(x, labels), nll_loss(x, labels)})
    EXPECT_EQ(value(loss_parts(loss).weight)[0], 4);
  for (const Tensor& loss : {rmse_loss(x, 0.0), mse_loss(x, 0.0, {.reduction = Reduction::sum}),
                             mse_loss(x, 0.0) + 1.0}) {
    EXPECT_EQ(loss_parts(loss).sum, loss);
    EXPECT_EQ(value(loss_parts(loss).weight)[0], 1);
    EXPECT_EQ(loss_parts(loss).weight.type(), loss.type());
  }
  EXPECT_EQ(message_of<TypeError>([&] { loss_parts(x); }),
            "loss_parts: the loss must be a float scalar, got f64[4,3]");
}

// Class weights are values like any other: the mean's gradient flows to them through numerator and
// denominator.
TEST_F(LossOps, class_weights_can_be_differentiated) {
  const Tensor w = g.parameter("w", {3}, init::zeros(), f64);
  const Tensor loss =
      cross_entropy(x, labels, {.label_smoothing = 0.2, .ignore_index = 0, .weight = w});
  ref::Bindings at{{"w", floats({3}, {0.5, 1.5, 2.0}, f64)}};
  const std::vector<double> d = gradients_of(g, loss, {w}, at)[0];
  for (std::size_t k = 0; k < 3; ++k) {
    double& v = at.at("w").f()[k];
    const double centre = v, h = 1e-5;
    v = centre + h;
    const double up = value_of(g, loss, at)[0];
    v = centre - h;
    const double down = value_of(g, loss, at)[0];
    v = centre;
    EXPECT_NEAR(d[k], (up - down) / (2 * h), 1e-7);
  }
}

}  // namespace
}  // namespace pantala::tests::loss_test
