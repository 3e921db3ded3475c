// Cases beside the recorded ones, with numbers that PyTorch 2.15 gave in double precision: kinks,
// ties, NaN, empty axes, and attributes that differ along each axis. The upstream gradient of
// element k of the result is k + 1.
#include <gtest/gtest.h>

#include <numeric>

#include "ops/table.h"
#include "pantala/ops.h"
#include "support/numbers.h"

namespace pantala::tests::torch_cases_test {
namespace {

using ir::Ints;

struct TorchCase {
  const char* name;
  const char* op;
  ir::NamedAttrs attrs;
  std::vector<Literal> inputs;
  std::vector<double> y;                       // the first result
  std::vector<std::vector<double>> gradients;  // of the first float inputs
};
std::ostream& operator<<(std::ostream& out, const TorchCase& c) { return out << c.name; }

// Multiples of 1/8 in [-1, 1].
Literal pattern(const Shape& shape, std::int64_t seed) {
  Literal values(Type{f32, shape});
  for (std::int64_t k = 0; k < values.numel(); ++k)
    values.f()[k] = static_cast<double>((k * 37 + seed * 11) % 17 - 8) / 8;
  return values;
}

std::vector<TorchCase> torch_cases() {
  return {
      // Kinks and NaN: where PyTorch decides for one side.
      {"clamp_at_its_bounds",
       "clamp",
       {{"low", -1.0}, {"high", 1.0}},
       {floats({5}, {-1, 1, 0, -2, NAN})},
       {-1, 1, 0, -1, NAN},
       {{0, 0, 3, 0, 0}}},
      {"clamp_with_one_bound_lets_infinity_pass",
       "clamp",
       {{"low", 0.0}},
       {floats({3}, {INFINITY, 0, -INFINITY})},
       {INFINITY, 0, 0},
       {{1, 0, 0}}},
      {"relu_at_zero_and_nan",
       "relu",
       {},
       {floats({4}, {0, -1, 2, NAN})},
       {0, 0, 2, NAN},
       {{0, 0, 3, 4}}},
      {"abs_at_zero_and_nan",
       "abs",
       {},
       {floats({4}, {0, -2, 3, NAN})},
       {0, 2, 3, NAN},
       {{0, -2, 3, 0}}},
      {"sign_of_nan", "sign", {}, {floats({4}, {0, -2, 3, NAN})}, {0, -1, 1, 0}, {{0, 0, 0, 0}}},
      {"hardswish_at_its_ends",
       "hardswish",
       {},
       {floats({4}, {-3, 3, 0, 4})},
       {0, 3, 0, 4},
       {{0, 2, 1.5, 4}}},
      {"hardsigmoid_at_its_ends",
       "hardsigmoid",
       {},
       {floats({4}, {-3, 3, 0, 4})},
       {0, 1, 0.5, 1},
       {{0, 0, 0.500000015, 0}}},
      {"maximum_shares_ties_and_gives_both_sides_of_a_nan_all",
       "maximum",
       {},
       {floats({4}, {1, 2, NAN, 3}), floats({4}, {1, 0, 1, NAN})},
       {1, 2, NAN, NAN},
       {{0.5, 2, 3, 4}, {0.5, 0, 3, 4}}},
      {"minimum_shares_ties_of_a_broadcast_side",
       "minimum",
       {},
       {floats({2, 2}, {1, 2, 0, 1}), floats({1}, {1})},
       {1, 1, 0, 1},
       {{0.5, 0, 3, 2}, {4.5}}},
      {"pow_at_zero",
       "pow",
       {},
       {floats({4}, {0, 0, 2, -2}), floats({4}, {0, 2, 0, 3})},
       {1, 0, 1, -8},
       {{0, 0, 0, 48}, {0, 0, 2.07944154, NAN}}},
      // Reductions.
      {"prod_of_one_zero_and_of_two",
       "prod",
       {{"axes", Ints{1}}},
       {floats({2, 5}, {2, 0, 3, -1, 4, 0, 2, 5, 0, 1})},
       {0, 0},
       {{0, -24, 0, 0, 0, 0, 0, 0, 0, 0}}},
      {"amax_shares_ties_over_two_axes",
       "amax",
       {{"axes", Ints{0, -1}}},
       {floats({2, 2, 3}, {1, 3, 3, 5, 5, 0, 3, 2, 1, 5, 5, 5})},
       {3, 5},
       {{0, 0.333333333, 0.333333333, 0.4, 0.4, 0, 0.333333333, 0, 0, 0.4, 0.4, 0.4}}},
      {"amin_keeps_the_axis",
       "amin",
       {{"axes", Ints{-2}}, {"keepdims", true}},
       {floats({2, 3}, {1, 0, 2, 1, 5, 2})},
       {1, 0, 2},
       {{0.5, 2, 1.5, 0.5, 0, 1.5}}},
      {"argmax_takes_the_first_of_ties_and_the_first_nan",
       "argmax",
       {{"axis", std::int64_t{1}}},
       {floats({3, 4}, {1, 3, 3, 2, 0, NAN, 5, NAN, -INFINITY, -INFINITY, -INFINITY, -INFINITY})},
       {1, 1, 0},
       {}},
      {"argmax_tells_integers_beyond_2_to_53_apart",
       "argmax",
       {{"axis", std::int64_t{0}}},
       {ints({3}, {9007199254740992, 9007199254740993, 0})},
       {1},
       {}},
      {"logsumexp_over_nothing",
       "logsumexp",
       {{"axes", Ints{0}}},
       {floats({0, 2}, {})},
       {-INFINITY, -INFINITY},
       {{}}},
      {"logsumexp_of_infinities",
       "logsumexp",
       {{"axes", Ints{1}}},
       {floats({2, 3}, {-INFINITY, 0, 1, 700, 710, -INFINITY})},
       {1.31326169, 710.000045},
       {{0, 0.268941421, 0.731058579, 9.07957374e-05, 1.9999092, 0}}},
      {"var_over_outer_axes",
       "var",
       {{"axes", Ints{0, 2}}, {"unbiased", true}},
       {pattern({2, 2, 3}, 1)},
       {0.683854167, 0.1171875},
       {{0.108333333, 0.258333333, -0.441666667, -0.35, -0.05, 0.25, 0.158333333, 0.308333333,
         -0.391666667, -0.25, 0.05, 0.35}}},
      {"cumsum_along_the_first_axis",
       "cumsum",
       {{"axis", std::int64_t{-2}}},
       {pattern({3, 2}, 1)},
       {0.375, 0.75, -0.625, 0.125, -0.875, 0.25},
       {{9, 12, 8, 10, 5, 6}}},
      // Movement and indices.
      {"slice_counts_from_the_end_and_steps",
       "slice",
       {{"starts", Ints{-5, 1}}, {"ends", Ints{100, -1}}, {"steps", Ints{2, 1}}},
       {pattern({7, 4}, 1)},
       {-0.5, -0.125, 0.375, 0.75, -0.875, -0.5},
       {{0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 3, 4, 0, 0, 0, 0, 0, 0, 5, 6, 0}}},
      {"tile_of_five_axes",
       "tile",
       {{"repeats", Ints{1, 2, 1, 1, 2}}},
       {pattern({2, 1, 1, 1, 2}, 1)},
       {0.375, 0.75, 0.375, 0.75, 0.375, 0.75, 0.375, 0.75, -1, -0.625, -1, -0.625, -1, -0.625, -1,
        -0.625},
       {{16, 20, 48, 52}}},
      {"gather_repeats_rows_of_the_first_axis",
       "gather",
       {{"axis", std::int64_t{0}}},
       {pattern({2, 3}, 1), ints({4, 2}, {0, 1, 1, 1, 0, 0, 1, 1})},
       {0.375, -0.25, -0.625, -0.25, 0.375, 0.75, -0.625, -0.25},
       {{6, 6, 0, 10, 14, 0}}},
      {"scatter_add_of_repeated_columns",
       "scatter_add",
       {{"axis", std::int64_t{-1}}},
       {pattern({2, 3}, 1), ints({4}, {2, 0, 2, 2}), pattern({2, 4}, 2)},
       {0.375, 0.75, -0.25, -1.25, -0.25, -1},
       {{1, 2, 3, 4, 5, 6}, {3, 1, 3, 3, 6, 4, 6, 6}}},
      {"triu_beyond_the_matrix",
       "triu",
       {{"diagonal", std::int64_t{2}}},
       {pattern({2, 2, 3}, 1)},
       {0, 0, -1, 0, 0, 0, 0, 0, -0.875, 0, 0, 0},
       {{0, 0, 3, 0, 0, 0, 0, 0, 9, 0, 0, 0}}},
      // Products and convolutions, attributes different along each axis.
      {"matmul_of_a_vector_and_a_batch",
       "matmul",
       {},
       {pattern({3}, 1), pattern({2, 3, 2}, 2)},
       {1.140625, 1.1875, 1.15625, 1.203125},
       {{-0.625, 6.875, -6.875}, {0.375, 0.75, 0.75, 1.5, -1, -2, 1.125, 1.5, 2.25, 3, -3, -4}}},
      {"matmul_transposed_both_with_broadcast_batches",
       "matmul",
       {{"transpose_a", true}, {"transpose_b", true}},
       {pattern({2, 1, 3, 2}, 1), pattern({2, 1, 3}, 2)},
       {-0.234375, -0.234375, 1.4375, 1.109375, -0.234375, -0.234375, 1.328125, 1},
       {{1.875, 2.25, -3, -4, -1.5, -1.75, 3.375, 3.75, -7, -8, -2.5, -2.75},
        {9.625, -9.625, 0.875, 14.625, -15.625, 0.875}}},
      {"conv1d_in_groups",
       "conv1d",
       {{"stride", Ints{2}},
        {"padding", Ints{2}},
        {"dilation", Ints{2}},
        {"groups", std::int64_t{2}}},
       {pattern({1, 4, 5}, 1), pattern({2, 2, 2}, 2), pattern({2}, 3)},
       {1.09375, 1.5625, 1.328125, 0.90625, -0.71875, -0.875, -1.125, 0.25},
       {{-0.75,  0, -1.125, 0, -1.5,    1.5,    0, 2.625, 0, 3.75,
         -9.125, 0, -10.75, 0, -12.375, -0.875, 0, -1,    0, -1.125},
        {-3.25, -2.375, 0.875, 0.375, -2.375, -2.125, -7.625, -6.625},
        {10, 26}}},
      {"conv2d_asymmetric",
       "conv2d",
       {{"stride", Ints{2, 1}},
        {"padding", Ints{0, 2}},
        {"dilation", Ints{1, 2}},
        {"groups", std::int64_t{1}}},
       {pattern({1, 2, 4, 3}, 1), pattern({1, 2, 2, 3}, 2)},
       {0.015625, 0.375, -1.640625, -0.234375, -0.109375, -1.734375},
       {{-1.125, 0,    0.375, 1.25, -2,    -3.625, -2.25, 0,     1.5,  0.5,  -5,     -8.5,
         -0.625, 0.25, 0.875, 1.75, -1.75, -3.125, -1,    0.625, 2.75, 1.75, -4.375, -7.25},
        {4.125, 0, -4.5, -4.875, -1.875, 1.125, 6.375, -5.375, -3.25, -2.625, 3.375, 2.375}}},
      {"conv_transpose2d_with_output_padding_beyond_the_stride",
       "conv_transpose2d",
       {{"stride", Ints{1, 2}},
        {"padding", Ints{1, 0}},
        {"output_padding", Ints{1, 1}},
        {"dilation", Ints{2, 1}},
        {"groups", std::int64_t{2}}},
       {pattern({1, 2, 2, 2}, 1), pattern({2, 1, 2, 2}, 2), pattern({2}, 3)},
       {1.375,   1,      1.234375,  1,        1,         1.140625, 1.28125,  1.28125,
        1.5625,  1,      0.625,     0.25,     0.765625,  0.53125,  1,        -1.25,
        -1.0625, -1.625, -1.296875, -0.75,    -0.6875,   -0.78125, -0.78125, -0.734375,
        -0.75,   -0.875, -0.6875,   -0.96875, -0.640625, -0.75},
       {{7.5, 9.75, 12.75, 14.25, -2.5, -2.75, -29.75, -33.25},
        {-2.875, -4.5, -10.875, -11.375, 23.75, 25.125, 35.125, 36.375},
        {120, 345}}},
      {"max_pool2d_of_ties_in_ceil_mode",
       "max_pool2d",
       {{"kernel", Ints{2, 3}},
        {"stride", Ints{2, 2}},
        {"padding", Ints{1, 1}},
        {"ceil_mode", true}},
       {floats({1, 1, 3, 4}, {1, 1, 0, 2, 1, 1, 2, 2, 3, 0, 3, 3})},
       {1, 2, 2, 3, 3, 3},
       {{1, 0, 0, 5, 0, 0, 0, 0, 4, 0, 5, 6}}},
      {"avg_pool2d_in_ceil_mode_with_padding",
       "avg_pool2d",
       {{"kernel", Ints{3, 2}},
        {"stride", Ints{2, 2}},
        {"padding", Ints{1, 1}},
        {"ceil_mode", true},
        {"count_include_pad", true}},
       {pattern({1, 1, 4, 3}, 1)},
       {-0.0416666667, -0.0625, -0.104166667, 0, -0.125, 0.03125},
       {{0.166666667, 0.333333333, 0.333333333, 0.666666667, 1, 1, 0.5, 0.666666667, 0.666666667,
         1.75, 2.16666667, 2.16666667}}},
      {"avg_pool2d_in_ceil_mode_without_padding",
       "avg_pool2d",
       {{"kernel", Ints{3, 2}},
        {"stride", Ints{2, 2}},
        {"padding", Ints{1, 1}},
        {"ceil_mode", true},
        {"count_include_pad", false}},
       {pattern({1, 1, 4, 3}, 1)},
       {-0.125, -0.09375, -0.208333333, 0, -0.5, 0.0625},
       {{0.5, 0.5, 0.5, 1.5, 1.16666667, 1.16666667, 1, 0.666666667, 0.666666667, 6, 3.66666667,
         3.66666667}}},
      {"upsample_bilinear_of_a_single_row",
       "upsample_bilinear2x",
       {},
       {pattern({1, 1, 1, 3}, 1)},
       {0.375, 0.46875, 0.65625, 0.3125, -0.5625, -1, 0.375, 0.46875, 0.65625, 0.3125, -0.5625, -1},
       {{18.5, 26, 33.5}}},
      // Norms and attention.
      {"softmax_of_an_empty_axis",
       "softmax",
       {{"axis", std::int64_t{1}}},
       {floats({2, 0}, {})},
       {},
       {{}}},
      {"group_norm_without_positions",
       "group_norm",
       {{"groups", std::int64_t{2}}, {"eps", 0.01}},
       {pattern({2, 4}, 1), pattern({4}, 2), pattern({4}, 3)},
       {1.33088235, -0.75, -0.705882353, 0.661764706, 1.33088235, -0.75, -0.705882353, 0.661764706},
       {{-0.195399959, 0.195399959, -0.976999796, 0.976999796, -0.976999796, 0.976999796,
         -1.75859963, 1.75859963},
        {-5.29411765, 7.05882353, -8.82352941, 10.5882353},
        {6, 8, 10, 12}}},
      {"rms_norm_of_zeros",
       "rms_norm",
       {{"eps", 1e-05}},
       {floats({1, 3}, {0, 0, 0}), floats({3}, {1, 2, 3})},
       {0, 0, 0},
       {{316.227766, 1264.91106, 2846.04989}, {0, 0, 0}}},
      {"batch_norm_of_a_matrix",
       "batch_norm_train",
       {{"momentum", 0.3}, {"eps", 0.1}},
       {pattern({3, 2}, 1), pattern({2}, 2), pattern({2}, 3), floats({2}, {0, 0}),
        floats({2}, {1, 1})},
       {0.612378513, -0.75, 1.41184783, -0.75, 0.975773657, -0.75},
       {{0.77459586, 0, 0.412535389, 0, -1.18713125, 0}, {-1.93810744, -1.93810744}, {9, 12}}},
      {"attention_of_grouped_heads_with_a_float_mask",
       "attention",
       {},
       {pattern({1, 2, 2, 2}, 1), pattern({1, 1, 3, 2}, 2), pattern({1, 1, 3, 2}, 3),
        pattern({2, 3}, 4)},
       {0.0998064305, 0.0437606419, 0.402544709, 0.420750725, 0.288838344, 0.201771847,
        0.0582328189, 0.0221900962},
       {{-0.354645549, -0.354645549, -0.617390201, -0.617390201, -1.51109449, -1.51109449,
         -1.78587526, -1.78587526},
        {0.417422286, 0.148790484, -0.212112595, -1.25428146, -0.20530969, 1.10549097},
        {3.1477926, 3.92941566, 6.41081116, 7.92960063, 6.44139624, 8.14098371},
        {-0.607972301, -1.64259795, 2.25057025, -0.405101663, -2.28766696, 2.69276863}}},
      {"attention_causal_with_more_keys_than_queries_in_a_window",
       "attention",
       {{"causal", true}, {"window", std::int64_t{2}}},
       {pattern({1, 1, 3, 2}, 1), pattern({1, 1, 4, 2}, 2), pattern({1, 1, 4, 2}, 3)},
       {1, -0.75, 0.591671402, -0.52727531, 0.0227596135, 0.397759614},
       {{0, 0, -0.124560992, -0.124560992, -1.99792396, -1.99792396},
        {-0.166081323, -0.103800827, 0.529340226, -0.0778286243, -0.363258903, 0.181629451, 0, 0},
        {3.10910124, 4.81213499, 3.239168, 4.0057881, 2.65173076, 3.18207691, 0, 0}}},
      // Losses.
      {"cross_entropy_weighted_smoothed_and_ignoring",
       "cross_entropy",
       {{"reduction", std::string("mean")},
        {"label_smoothing", 0.2},
        {"ignore_index", std::int64_t{1}}},
       {pattern({2, 3, 2}, 1), ints({2, 2}, {0, 1, 2, 0}), floats({3}, {0.5, 1, 2})},
       {1.10885932},
       {{-0.026380024, 0, 0.00762913812, 0, 0.0187508859, 0, 0.330654316, -0.026380024,
         0.0641896103, 0.00762913812, -0.394843927, 0.0187508859}}},
      {"cross_entropy_of_ignored_rows_only",
       "cross_entropy",
       {{"reduction", std::string("mean")}},
       {pattern({2, 3}, 1), ints({2}, {-100, -100})},
       {NAN},
       {{0, 0, 0, 0, 0, 0}}},
      {"huber_loss_at_zero_and_at_delta",
       "huber_loss",
       {{"delta", 2.0}, {"reduction", std::string("none")}},
       {floats({5}, {0, 2, -2, 1, 3}), floats({1}, {0})},
       {0, 2, 2, 0.5, 4},
       {{0, 4, -6, 4, 10}, {-12}}},
      {"smooth_l1_loss_of_delta_zero",
       "smooth_l1_loss",
       {{"delta", 0.0}, {"reduction", std::string("sum")}},
       {floats({3}, {0, 2, -2}), floats({3}, {0, 0, 0})},
       {4},
       {{0, 1, -1}, {0, -1, 1}}},
      {"bce_of_certainties",
       "bce",
       {{"reduction", std::string("none")}},
       {floats({4}, {0, 1, 0, 0.5}), floats({4}, {0, 1, 1, 0.5})},
       {0, 0, 100, 0.693147181},
       {{0, 0, -3.00000001e+12, 0}}},
      {"bce_with_logits_weighted_twice",
       "bce_with_logits",
       {{"reduction", std::string("mean")}},
       {floats({2, 2}, {10000, -10000, 1, 0}), floats({2, 2}, {1, 1, 0.25, 0}), floats({2}, {1, 2}),
        floats({2}, {3, 0.5})},
       {2500.65155},
       {{0, -0.25, 0.086646967, 0.25}, {-2500, 2500, -0.0933691562, -0.173286795}}},
  };
}

// As expect_close, but NaN and infinities must be met exactly.
void expect_same(const std::vector<double>& actual, const std::vector<double>& expected,
                 const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  for (std::size_t k = 0; k < actual.size(); ++k) {
    const bool same =
        actual[k] == expected[k] || (std::isnan(actual[k]) && std::isnan(expected[k])) ||
        std::fabs(actual[k] - expected[k]) <= 1e-7 * std::max(1.0, std::fabs(expected[k]));
    EXPECT_TRUE(same) << what << ", element " << k << ": expected " << expected[k] << ", got "
                      << actual[k];
  }
}

Tensor upstream_of(Graph& graph, const Tensor& y) {
  std::vector<double> values(static_cast<std::size_t>(y.numel()));
  std::iota(values.begin(), values.end(), 1.0);
  return graph.constant(floats(y.shape(), values));
}

class TorchCases : public ::testing::TestWithParam<TorchCase> {};

TEST_P(TorchCases, agree) {
  const TorchCase& c = GetParam();
  Graph g;
  ref::Bindings bindings;
  std::vector<Operand> inputs;
  std::vector<Tensor> wrt;
  for (const Literal& input : c.inputs) {
    const std::string name = std::to_string(inputs.size());
    const Tensor leaf = g.input(name, input.shape(), input.dtype());
    bindings[name] = input;
    inputs.emplace_back(leaf);
    if (input.is_float() && wrt.size() < c.gradients.size()) wrt.push_back(leaf);
  }
  const Tensor y = ops::apply(c.op, inputs, c.attrs)[0];
  expect_same(value_of(g, y, bindings), c.y, "result");
  if (wrt.empty()) return;
  const auto gradients = gradients_of(g, sum(y * upstream_of(g, y)), wrt, bindings);
  for (std::size_t k = 0; k < gradients.size(); ++k)
    expect_same(gradients[k], c.gradients[k], "gradient " + std::to_string(k));
}
INSTANTIATE_TEST_SUITE_P(Torch, TorchCases, ::testing::ValuesIn(torch_cases()),
                         [](const auto& test) { return std::string(test.param.name); });

// The magnitude of the error has no derivative at 0, but its square, of which the loss is half
// there, has two.
TEST(TorchCases, huber_loss_is_curved_at_zero_error) {
  Graph g;
  const Tensor x = g.constant(floats({4}, {0, 1, 2, -3}));
  const Gradients first = differentiate(
      g, huber_loss(x, zeros_like(x), {.delta = 2, .reduction = Reduction::sum}), {x});
  const Graph& h = first.graph;
  expect_close(gradients_of(h, sum(first.gradients[0]), {first.at(x)})[0], {1, 1, 0, 0});
}

}  // namespace
}  // namespace pantala::tests::torch_cases_test
