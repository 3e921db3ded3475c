// clang-format off: expected messages name the line of a call, which must not move.
// Layers: names, shapes and first values of their parameters, values against PyTorch's modules,
// running statistics, dropout, and errors with the layer's name and the line of the call. Expected
// numbers were recorded with PyTorch in double on parameters filled by name.
#include "pantala/nn.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "pantala/ops.h"
#include "pantala/text.h"
#include "support/errors.h"
#include "support/fill.h"
#include "support/gradcheck.h"
#include "support/numbers.h"

namespace pantala::tests {
namespace {

// "fc.weight f32[4,3] kaiming_uniform(...)": every leaf of a kind, one per line.
std::string leaves_of(const Graph& g, LeafKind kind) {
  std::string text;
  for (const Leaf& leaf : g.leaves(kind))
    text += fmt::format("{} {}\n", leaf.name, leaf.value.type().str());
  return text;
}
std::string parameters_of(const Graph& g) { return leaves_of(g, LeafKind::parameter); }

double largest(const Literal& values) {
  double result = 0;
  for (const double v : values.f()) result = std::max(result, std::fabs(v));
  return result;
}

// Parameters of the layer "m" filled as the recording did, by their name without "m.".
ref::Bindings filled(const Graph& g, ref::Bindings bindings = {}) {
  for (const Leaf& leaf : g.leaves(LeafKind::parameter))
    bindings[leaf.name] = fill(leaf.name.substr(2), leaf.value.shape(), 0.5);
  return bindings;
}

// The sum weighted by cos(k), the sum of squares and the first values: what was recorded of a
// result.
struct Recorded {
  double weighted, squares;
  std::vector<double> head;
};

void expect_recorded(const std::vector<double>& values, const Recorded& expected) {
  double weighted = 0, squares = 0;
  for (std::size_t k = 0; k < values.size(); ++k) {
    weighted += values[k] * std::cos(static_cast<double>(k));
    squares += values[k] * values[k];
  }
  EXPECT_NEAR(weighted, expected.weighted, 1e-9);
  EXPECT_NEAR(squares, expected.squares, 1e-9);
  expect_close({values.begin(), values.begin() + 3}, expected.head, 1e-9);
}

const Literal kX = fill("x", {2, 5, 8});

// --- linear, convolutions, mlp, embedding

TEST(Nn, linear_names_shapes_and_first_values) {
  Graph g;
  const Tensor y = nn::linear("fc", g.input("x", {2, 64}), 128);
  EXPECT_EQ(y.type().str(), "f32[2,128]");
  EXPECT_EQ(parameters_of(g), "fc.weight f32[128,64]\nfc.bias f32[128]\n");
  const ref::Session session(g, 1);
  for (const char* name : {"fc.weight", "fc.bias"}) {
    EXPECT_LE(largest(session.value(name)), 0.125) << name;
    EXPECT_GT(largest(session.value(name)), 0.12) << name;
  }
  EXPECT_NE(session.value("fc.weight").at(0), session.value("fc.bias").at(0));
}

TEST(Nn, linear_without_bias_and_on_any_rank) {
  Graph g;
  EXPECT_EQ(nn::linear("a", g.input("x", {2, 5, 3}), 4, {.bias = false}).type().str(),
            "f32[2,5,4]");
  EXPECT_EQ(nn::linear("b", g.input("v", {3}, f64), 4).type().str(), "f64[4]");
  EXPECT_EQ(parameters_of(g), "a.weight f32[4,3]\nb.weight f64[4,3]\nb.bias f64[4]\n");
}

TEST(Nn, linear_is_x_times_the_transposed_weight_plus_bias) {
  Graph g;
  const Tensor y = nn::linear("fc", g.input("x", {1, 2}), 2);
  expect_close(value_of(g, y,
                        {{"x", floats({1, 2}, {1, 10})},
                         {"fc.weight", floats({2, 2}, {1, 2, 3, 4})},
                         {"fc.bias", floats({2}, {0.5, 0.25})}}),
               {21.5, 43.25});
}

TEST(Nn, conv1d_matches_py_torch) {
  Graph g;
  const Tensor y = nn::conv1d("m", g.input("cx", {2, 4, 9}), 6, {3},
                              {.stride = {2}, .padding = {1}, .groups = 2});
  EXPECT_EQ(parameters_of(g), "m.weight f32[6,2,3]\nm.bias f32[6]\n");
  EXPECT_EQ(y.type().str(), "f32[2,6,5]");
  expect_recorded(value_of(g, y, filled(g, {{"cx", fill("cx", {2, 4, 9})}})),
                  {1.2834568473864079,
                   10.81604977713188,
                   {-0.18274015380615793, -0.03381053245314547, -0.0631948054434659}});
}

TEST(Nn, conv2d_matches_py_torch) {
  Graph g;
  const Tensor y = nn::conv2d("m", g.input("bx", {2, 3, 4, 5}), 4, {3, 2},
                              {.padding = {1, 0}, .dilation = {1, 2}});
  EXPECT_EQ(parameters_of(g), "m.weight f32[4,3,3,2]\nm.bias f32[4]\n");
  expect_recorded(value_of(g, y, filled(g, {{"bx", fill("bx", {2, 3, 4, 5})}})),
                  {3.5853519695064886,
                   68.59435047740342,
                   {-0.7516080246227403, -0.006449672808265916, 1.1046823701673318}});
}

TEST(Nn, convolutions_start_within_one_over_the_root_of_fan_in) {
  Graph g;
  nn::conv2d("conv", g.input("x", {1, 16, 8, 8}), 64, {3}, {.padding = {1}, .groups = 4});
  const ref::Session session(g, 1);
  for (const char* name : {"conv.weight", "conv.bias"}) {
    EXPECT_LE(largest(session.value(name)), 1 / 6.0) << name;  // fan in: 16 / 4 * 9
    EXPECT_GT(largest(session.value(name)), 0.95 / 6) << name;
  }
  Graph plain;
  nn::conv1d("conv", plain.input("x", {1, 3, 8}), 5, {3}, {.bias = false});
  EXPECT_EQ(parameters_of(plain), "conv.weight f32[5,3,3]\n");
}

TEST(Nn, mlp_is_named_and_computed_as_py_torchs_sequential) {
  Graph g;
  const Tensor y = nn::mlp("m", g.input("x", {2, 5, 8}), {6, 3}, nn::Activation::tanh);
  EXPECT_EQ(parameters_of(g),
            "m.0.weight f32[6,8]\nm.0.bias f32[6]\nm.2.weight f32[3,6]\nm.2.bias f32[3]\n");
  expect_recorded(value_of(g, y, filled(g, {{"x", kX}})),
                  {-0.34773920119428686,
                   7.037532961108515,
                   {0.31499565215876374, -0.026312186903978223, 0.4507779325621802}});
}

TEST(Nn, activations_are_found_by_their_names) {
  const std::vector<std::string> names = nn::activation_names();
  EXPECT_EQ(names.front(), "identity");
  EXPECT_EQ(names.size(), static_cast<std::size_t>(nn::Activation::sigmoid) + 1);
  EXPECT_EQ(nn::activation_of("gelu_tanh"), nn::Activation::gelu_tanh);
  for (std::size_t k = 0; k < names.size(); ++k)
    EXPECT_EQ(nn::activation_of(names[k]), static_cast<nn::Activation>(k)) << names[k];
  EXPECT_EQ(message_of<TypeError>([] { nn::activation_of("rulu"); }),
            "there is no activation 'rulu'; did you mean 'relu'?");
}

TEST(Nn, every_activation_is_its_op) {
  Graph g;
  const Tensor x = g.input("x", {3});
  EXPECT_EQ(nn::activate(x, nn::Activation::identity), x);
  EXPECT_EQ(nn::activate(x, nn::Activation::relu), pantala::relu(x));
  EXPECT_EQ(nn::activate(x, nn::Activation::leaky_relu), pantala::leaky_relu(x));
  EXPECT_EQ(nn::activate(x, nn::Activation::elu), pantala::elu(x));
  EXPECT_EQ(nn::activate(x, nn::Activation::gelu), pantala::gelu(x));
  EXPECT_EQ(nn::activate(x, nn::Activation::gelu_tanh), pantala::gelu_tanh(x));
  EXPECT_EQ(nn::activate(x, nn::Activation::silu), pantala::silu(x));
  EXPECT_EQ(nn::activate(x, nn::Activation::mish), pantala::mish(x));
  EXPECT_EQ(nn::activate(x, nn::Activation::tanh), pantala::tanh(x));
  EXPECT_EQ(nn::activate(x, nn::Activation::sigmoid), pantala::sigmoid(x));
}

TEST(Nn, embedding_matches_py_torch_and_starts_normal) {
  Graph g;
  const Tensor y = nn::embedding("m", g.input("index", {2, 2}, i64), 5, 3);
  EXPECT_EQ(y.type().str(), "f32[2,2,3]");
  expect_recorded(value_of(g, y, filled(g, {{"index", ints({2, 2}, {0, 4, 2, 2})}})),
                  {0.005764636096746822,
                   1.5387436744310001,
                   {-0.44611936807632446, -0.12280899286270142, 0.32909858226776123}});
  Graph large;
  nn::embedding("table", large.input("index", {1}, i32), 1000, 50, {.dtype = f64});
  const Literal table = ref::Session(large, 1).value("table.weight");
  EXPECT_EQ(table.type().str(), "f64[1000,50]");
  double squares = 0;
  for (const double v : table.f()) squares += v * v;
  EXPECT_NEAR(squares / 50000, 1, 0.03);
}

// --- normalisations

TEST(Nn, layer_norm_matches_py_torch) {
  Graph g;
  const Tensor y = nn::layer_norm("m", g.input("x", {2, 5, 8}));
  EXPECT_EQ(parameters_of(g), "m.weight f32[8]\nm.bias f32[8]\n");
  expect_recorded(value_of(g, y, filled(g, {{"x", kX}})),
                  {1.0736525864752484,
                   23.486784139912615,
                   {0.9463830548516589, 0.38569147502381596, 0.44827180719705045}});
  const ref::Session session(g);
  EXPECT_EQ(session.value("m.weight").to_doubles(), std::vector<double>(8, 1));
  EXPECT_EQ(session.value("m.bias").to_doubles(), std::vector<double>(8, 0));
}

TEST(Nn, rms_norm_matches_py_torch) {
  Graph g;
  const Tensor y = nn::rms_norm("m", g.input("x", {2, 5, 8}));
  EXPECT_EQ(parameters_of(g), "m.weight f32[8]\n");
  expect_recorded(value_of(g, y, filled(g, {{"x", kX}})),
                  {0.3333064163673614,
                   10.993833426580013,
                   {0.5419665283663121, -0.15405498714263813, 0.1917769830662426}});
}

TEST(Nn, group_norm_matches_py_torch) {
  Graph g;
  const Tensor y = nn::group_norm("m", g.input("gx", {2, 4, 3}), 2);
  EXPECT_EQ(parameters_of(g), "m.weight f32[4]\nm.bias f32[4]\n");
  expect_recorded(value_of(g, y, filled(g, {{"gx", fill("gx", {2, 4, 3})}})),
                  {2.719192485025401,
                   7.559174929870276,
                   {0.4826333521577887, -0.46397209311197685, -0.3300205598757732}});
}

TEST(Nn, norms_without_parameters) {
  Graph g;
  const Tensor x = g.input("x", {2, 4});
  nn::layer_norm("a", x, {.affine = false});
  nn::rms_norm("b", x, {.affine = false});
  nn::group_norm("c", x, 2, {.affine = false});
  EXPECT_EQ(parameters_of(g), "");
  nn::layer_norm("d", x, {.bias = false});
  EXPECT_EQ(parameters_of(g), "d.weight f32[4]\n");
}

TEST(Nn, batch_norm_trains_its_running_statistics_as_py_torch) {
  Graph g;
  g.output("y", nn::batch_norm("m", g.input("bx", {2, 3, 4, 5}), {.momentum = 0.2}));
  EXPECT_EQ(parameters_of(g), "m.weight f32[3]\nm.bias f32[3]\n");
  EXPECT_EQ(leaves_of(g, LeafKind::state),
            "m.running_mean f32[3]\nm.running_var f32[3]\nm.num_batches_tracked i64[]\n");
  ref::Session session(g);
  EXPECT_EQ(session.value("m.running_mean").to_doubles(), std::vector<double>(3, 0));
  EXPECT_EQ(session.value("m.running_var").to_doubles(), std::vector<double>(3, 1));
  for (const auto& [name, value] : filled(g)) session.set_value(name, value);
  Literal x = fill("bx", {2, 3, 4, 5});
  session.set_input("bx", x);
  session.step();
  expect_recorded(session.output("y").to_doubles(),
                  {-4.026899800221225,
                   30.064449217265228,
                   {-0.3730098418918224, -0.3505771856761576, 0.47123502651681937}});
  for (double& v : x.f()) v = 2 * v + 1;
  session.set_input("bx", x);
  session.step();
  expect_recorded(session.output("y").to_doubles(),
                  {-4.02695067640232,
                   30.06475827323192,
                   {-0.37301431922846984, -0.35058139547202327, 0.47124061798031447}});
  expect_close(session.value("m.running_mean").to_doubles(),
               {0.1472344632148743, 0.17577007460594177, 0.15316173338890077}, 1e-12);
  expect_close(session.value("m.running_var").to_doubles(),
               {0.9495868826975042, 0.9354914730556424, 0.9473207031633613}, 1e-12);
  EXPECT_EQ(session.value("m.num_batches_tracked").at(0), 2);
}

TEST(Nn, batch_norm_in_evaluation_uses_the_running_statistics) {
  Graph g;
  const Tensor y = nn::batch_norm("m", g.input("bx", {2, 3, 4, 5}), {.training = false});
  EXPECT_TRUE(g.updates().empty());
  ref::Bindings values = filled(g, {{"bx", fill("bx", {2, 3, 4, 5})}});
  values["m.running_mean"] =
      floats({3}, {0.1472344632148743, 0.17577007460594177, 0.15316173338890077});
  values["m.running_var"] =
      floats({3}, {0.9495868826975042, 0.9354914730556424, 0.9473207031633613});
  expect_recorded(value_of(g, y, values),
                  {-2.209433381014682,
                   20.520011882746473,
                   {-0.10308047964123807, -0.09017197504794076, 0.3827264019402023}});
}

// --- attention and the encoder layer

TEST(Nn, self_attention_matches_py_torch) {
  Graph g;
  const Tensor x = g.input("x", {2, 5, 8});
  const Tensor y = nn::multi_head_attention("m", x, {.heads = 2});
  EXPECT_EQ(parameters_of(g),
            "m.in_proj_weight f32[24,8]\nm.in_proj_bias f32[24]\nm.out_proj.weight "
            "f32[8,8]\nm.out_proj.bias f32[8]\n");
  expect_recorded(value_of(g, y, filled(g, {{"x", kX}})),
                  {0.3927384709688353,
                   4.855219994919164,
                   {-0.1004226359571666, 0.06416625735684697, 0.17581761946439217}});
}

const Recorded kCausal{0.9848301494762826,
                       10.123090060723122,
                       {0.09336172922963587, -0.2872815919577483, 0.28203340915261116}};

TEST(Nn, causal_attention_matches_py_torch_by_option_and_by_either_mask) {
  const auto evaluate_with =
      [](const std::function<void(Graph&, nn::MultiHeadAttentionOptions&)>& configure) {
        Graph g;
        nn::MultiHeadAttentionOptions options{.heads = 2};
        configure(g, options);
        const Tensor y = nn::multi_head_attention("m", g.input("x", {2, 5, 8}), options);
        expect_recorded(value_of(g, y, filled(g, {{"x", kX}})), kCausal);
      };
  Literal keep(Type{boolean, {5, 5}}), add(Type{f32, {5, 5}});
  for (std::int64_t k = 0; k < 25; ++k) {
    keep.i()[k] = k % 5 <= k / 5;
    add.f()[k] = k % 5 <= k / 5 ? 0 : -INFINITY;
  }
  evaluate_with([](Graph&, nn::MultiHeadAttentionOptions& o) { o.causal = true; });
  evaluate_with([&](Graph& g, nn::MultiHeadAttentionOptions& o) { o.mask = g.constant(keep); });
  evaluate_with([&](Graph& g, nn::MultiHeadAttentionOptions& o) { o.mask = g.constant(add); });
  // A probability too small to drop anything takes the path with dropout: the same numbers.
  evaluate_with(
      [](Graph&, nn::MultiHeadAttentionOptions& o) { o.causal = true, o.dropout = 1e-12; });
  evaluate_with([&](Graph& g, nn::MultiHeadAttentionOptions& o) {
    o.mask = g.constant(keep), o.dropout = 1e-12;
  });
  evaluate_with([&](Graph& g, nn::MultiHeadAttentionOptions& o) {
    o.mask = g.constant(add), o.dropout = 1e-12;
  });
  evaluate_with([](Graph&, nn::MultiHeadAttentionOptions& o) {
    o.causal = true, o.dropout = 0.5, o.training = false;
  });
}

TEST(Nn, cross_attention_matches_py_torch) {
  Graph g;
  const Tensor x = g.input("x", {2, 5, 8}), memory = g.input("memory", {2, 7, 8});
  const Tensor y = nn::multi_head_attention("m", x, memory, memory, {.heads = 2});
  EXPECT_EQ(parameters_of(g),
            "m.in_proj_weight f32[24,8]\nm.in_proj_bias f32[24]\nm.out_proj.weight "
            "f32[8,8]\nm.out_proj.bias f32[8]\n");
  EXPECT_EQ(y.type().str(), "f32[2,5,8]");
  expect_recorded(value_of(g, y, filled(g, {{"x", kX}, {"memory", fill("memory", {2, 7, 8})}})),
                  {0.38779441198489506,
                   8.138999762596603,
                   {-0.3266784687794092, 0.28406309573261723, 0.07587609181037494}});
}

TEST(Nn, attention_with_other_key_and_value_sizes_matches_py_torch) {
  Graph g;
  const Tensor y = nn::multi_head_attention("m", g.input("x", {2, 5, 8}), g.input("key", {2, 7, 6}),
                                            g.input("value", {2, 7, 4}), {.heads = 2});
  EXPECT_EQ(parameters_of(g),
            "m.q_proj_weight f32[8,8]\nm.k_proj_weight f32[8,6]\nm.v_proj_weight "
            "f32[8,4]\nm.in_proj_bias f32[24]\n"
            "m.out_proj.weight f32[8,8]\nm.out_proj.bias f32[8]\n");
  expect_recorded(value_of(g, y,
                           filled(g, {{"x", kX},
                                      {"key", fill("key", {2, 7, 6})},
                                      {"value", fill("value", {2, 7, 4})}})),
                  {0.32481613554431393,
                   6.520375685502724,
                   {-0.38215947321840155, 0.24509465257396884, -0.1454341323753413}});
}

TEST(Nn, attention_without_bias_matches_py_torch) {
  Graph g;
  const Tensor y =
      nn::multi_head_attention("m", g.input("x", {2, 5, 8}), {.heads = 4, .bias = false});
  EXPECT_EQ(parameters_of(g), "m.in_proj_weight f32[24,8]\nm.out_proj.weight f32[8,8]\n");
  expect_recorded(value_of(g, y, filled(g, {{"x", kX}})),
                  {0.12079958236414284,
                   1.1613319058466576,
                   {0.2235800958967469, -0.15861076558222828, 0.2313185521216351}});
}

TEST(Nn, attention_starts_as_py_torch) {
  Graph g;
  nn::multi_head_attention("m", g.input("x", {1, 2, 64}), {.heads = 4});
  const ref::Session session(g, 1);
  EXPECT_NEAR(largest(session.value("m.in_proj_weight")), std::sqrt(6.0 / (64 + 192)), 1e-3);
  EXPECT_NEAR(largest(session.value("m.out_proj.weight")), 1 / 8.0, 1e-3);
  EXPECT_EQ(largest(session.value("m.in_proj_bias")), 0);
  EXPECT_EQ(largest(session.value("m.out_proj.bias")), 0);
}

TEST(Nn, encoder_layer_matches_py_torch) {
  Graph g;
  const Tensor x = g.input("x", {2, 5, 8});
  const Tensor y =
      nn::transformer_encoder_layer("m", x, {.heads = 2, .feed_forward = 16, .dropout = 0});
  EXPECT_EQ(parameters_of(g),
            "m.self_attn.in_proj_weight f32[24,8]\nm.self_attn.in_proj_bias "
            "f32[24]\nm.self_attn.out_proj.weight f32[8,8]\nm.self_attn.out_proj.bias f32[8]\n"
            "m.norm1.weight f32[8]\nm.norm1.bias f32[8]\nm.linear1.weight "
            "f32[16,8]\nm.linear1.bias f32[16]\nm.linear2.weight f32[8,16]\nm.linear2.bias f32[8]\n"
            "m.norm2.weight f32[8]\nm.norm2.bias f32[8]\n");
  expect_recorded(value_of(g, y, filled(g, {{"x", kX}})),
                  {-0.6072685400145154,
                   10.407556188260182,
                   {-0.16516454589844135, -0.7241415511767084, 0.12116663735164733}});
}

TEST(Nn, encoder_layer_with_its_norms_first_matches_py_torch) {
  Graph g;
  const nn::TransformerEncoderLayerOptions options{.heads = 2,
                                                   .feed_forward = 16,
                                                   .activation = nn::Activation::gelu,
                                                   .norm_first = true,
                                                   .causal = true,
                                                   .training = false};
  const Tensor y = nn::transformer_encoder_layer("m", g.input("x", {2, 5, 8}), options);
  expect_recorded(value_of(g, y, filled(g, {{"x", kX}})),
                  {-2.6917097304046123,
                   28.149125554232626,
                   {-0.7362926961977544, 0.9071528882532534, 0.859641610293503}});
}

TEST(Nn, encoder_layer_has_correct_gradients) {
  Graph g;
  const Tensor x = g.input("x", {1, 3, 4});
  const Tensor y = nn::transformer_encoder_layer("m", x,
                                                 {.heads = 2,
                                                  .feed_forward = 5,
                                                  .dropout = 0,
                                                  .activation = nn::Activation::gelu,
                                                  .causal = true});
  const Tensor loss = sum(y * g.constant(fill("weights", {1, 3, 4})));
  std::vector<Tensor> parameters;
  for (const Leaf& leaf : g.leaves(LeafKind::parameter)) parameters.push_back(leaf.value);
  EXPECT_EQ(check_gradients(g, loss, parameters, filled(g, {{"x", fill("x", {1, 3, 4})}}), 1e-6),
            "");
}

// --- dropout

TEST(Nn, dropout_outside_training_or_without_probability_is_its_input) {
  Graph g;
  const Tensor x = g.input("x", {4});
  EXPECT_EQ(nn::dropout(x, 0.5, false), x);
  EXPECT_EQ(nn::dropout(x, 0), x);
  EXPECT_FALSE(nn::dropout(x, 0.5) == x);
}

TEST(Nn, dropout_keeps_the_mean) {
  Graph g;
  const Tensor x = g.input("x", {10000});
  const Tensor y = nn::dropout(x, 0.25);
  double zeros = 0;
  for (const double v : value_of(g, y, {{"x", floats({10000}, std::vector<double>(10000, 3))}})) {
    zeros += v == 0;
    ASSERT_NEAR(v, v == 0 ? 0 : 4, 1e-12);
  }
  EXPECT_NEAR(zeros / 10000, 0.25, 0.02);
}

TEST(Nn, the_encoder_layer_drops_in_training_only) {
  Graph g;
  const Tensor x = g.input("x", {2, 5, 8});
  const Tensor y =
      nn::transformer_encoder_layer("m", x, {.heads = 2, .feed_forward = 16, .dropout = 0.5});
  const std::vector<double> values = value_of(g, y, filled(g, {{"x", kX}}));
  EXPECT_GT(std::fabs(values[0] - -0.16516454589844135), 1e-6);
  for (const double v : values) EXPECT_TRUE(std::isfinite(v));
}

// --- errors: the layer, its name, the line of the call

template <class F>
void expect_error(F&& call, const std::string& before, int line, const std::string& after) {
  EXPECT_EQ(message_of<TypeError>(call),
            fmt::format("{} (nn_test.cpp:{}): {}", before, line, after));
}
#define EXPECT_LAYER_ERROR(EXPRESSION, BEFORE, AFTER) \
  expect_error([&] { EXPRESSION; }, BEFORE, __LINE__, AFTER)

TEST(NnErrors, names) {
  Graph g;
  const Tensor x = g.input("x", {2, 3});
  EXPECT_LAYER_ERROR(nn::linear("", x, 4), "linear", "a layer's name cannot be empty");
  EXPECT_LAYER_ERROR(nn::linear("fc", 3.0, 4), "linear \"fc\"",
                     "x must be a tensor, not a number or an empty handle");
  EXPECT_LAYER_ERROR(nn::linear("fc", Tensor(), 4), "linear \"fc\"",
                     "x must be a tensor, not a number or an empty handle");
  const int first = __LINE__ + 1;
  nn::linear("fc", x, 4);
  EXPECT_LAYER_ERROR(
      nn::linear("fc", x, 4), "parameter \"fc\"",
      fmt::format("the name 'fc.weight' is used twice, first by parameter (nn_test.cpp:{})",
                  first));
}

TEST(NnErrors, products) {
  Graph g;
  const Tensor x = g.input("x", {2, 3}), i = g.input("i", {2, 3}, i64), s = g.input("s", {});
  const Tensor image = g.input("image", {2, 6, 5, 5});
  EXPECT_LAYER_ERROR(nn::linear("fc", x, 0), "linear \"fc\"",
                     "the output size must be positive, got 0");
  EXPECT_LAYER_ERROR(nn::linear("fc", x, std::int64_t{1} << 60), "linear \"fc\"",
                     "too many elements: [1152921504606846976,3]");
  EXPECT_LAYER_ERROR(nn::linear("fc", i, 4), "linear \"fc\"", "x must be floats, got i64[2,3]");
  EXPECT_LAYER_ERROR(nn::linear("fc", s, 4), "linear \"fc\"",
                     "x must have at least one axis, got f32[]");
  EXPECT_LAYER_ERROR(nn::conv2d("c", x, 4, {3}), "conv2d \"c\"",
                     "x must have 4 axes [batch, channels, height, width], got f32[2,3]");
  EXPECT_LAYER_ERROR(nn::conv1d("c", x, 4, {3}), "conv1d \"c\"",
                     "x must have 3 axes [batch, channels, length], got f32[2,3]");
  EXPECT_LAYER_ERROR(nn::conv2d("c", image, -1, {3}), "conv2d \"c\"",
                     "the number of output channels must be positive, got -1");
  EXPECT_LAYER_ERROR(nn::conv2d("c", image, 4, {3, 3, 3}), "conv2d \"c\"",
                     "the kernel needs 2 sizes, or one for all, got [3,3,3]");
  EXPECT_LAYER_ERROR(nn::conv2d("c", image, 4, {3, 0}), "conv2d \"c\"",
                     "the kernel's size must be positive, got 0");
  EXPECT_LAYER_ERROR(nn::conv2d("c", image, 4, {3}, {.groups = 0}), "conv2d \"c\"",
                     "groups must be positive, got 0");
  EXPECT_LAYER_ERROR(nn::conv2d("c", image, 4, {3}, {.groups = 4}), "conv2d \"c\"",
                     "6 input channels do not divide into 4 groups");
  EXPECT_LAYER_ERROR(nn::conv2d("c", image, 4, {3}, {.groups = 3}), "conv2d \"c\"",
                     "4 output channels do not divide into 3 groups");
  EXPECT_LAYER_ERROR(nn::mlp("net", x, {}), "mlp \"net\"", "at least one output size is needed");
  EXPECT_LAYER_ERROR(nn::mlp("net", x, {4, 0}), "mlp \"net\"",
                     "every output size must be positive, got 0");
  EXPECT_LAYER_ERROR(nn::embedding("e", x, 4, 2), "embedding \"e\"",
                     "the index must be integers, got f32[2,3]");
  EXPECT_LAYER_ERROR(nn::embedding("e", i, 0, 2), "embedding \"e\"",
                     "the number of rows must be positive, got 0");
  EXPECT_LAYER_ERROR(nn::embedding("e", i, 4, -2), "embedding \"e\"",
                     "the size of a row must be positive, got -2");
  EXPECT_LAYER_ERROR(nn::embedding("e", i, 4, 2, {.dtype = i32}), "embedding \"e\"",
                     "the table needs a float type, got i32");
  EXPECT_EQ(parameters_of(g), "");  // a call that fails its checks leaves nothing behind
}

TEST(NnErrors, norms) {
  Graph g;
  const Tensor x = g.input("x", {1, 6}), v = g.input("v", {6}), s = g.input("s", {});
  EXPECT_LAYER_ERROR(nn::layer_norm("n", s), "layer_norm \"n\"",
                     "x must have at least one axis, got f32[]");
  EXPECT_LAYER_ERROR(nn::rms_norm("n", x, {.eps = -1}), "rms_norm \"n\"",
                     "eps must be finite and not negative, got -1");
  EXPECT_LAYER_ERROR(nn::group_norm("n", v, 2), "group_norm \"n\"",
                     "x must have at least 2 axes [batch, channels, ...], got f32[6]");
  EXPECT_LAYER_ERROR(nn::group_norm("n", x, 0), "group_norm \"n\"",
                     "groups must be positive, got 0");
  EXPECT_LAYER_ERROR(nn::group_norm("n", x, 4), "group_norm \"n\"",
                     "6 channels do not divide into 4 groups");
  EXPECT_LAYER_ERROR(nn::batch_norm("n", v), "batch_norm \"n\"",
                     "x must have at least 2 axes [batch, channels, ...], got f32[6]");
  EXPECT_LAYER_ERROR(nn::batch_norm("n", x), "batch_norm \"n\"",
                     "training needs more than one value per channel, got f32[1,6]");
  EXPECT_LAYER_ERROR(nn::batch_norm("n", x, {.momentum = 1.5}), "batch_norm \"n\"",
                     "momentum must be between 0 and 1, got 1.5");
}

TEST(NnErrors, attention) {
  Graph g, other;
  const Tensor x = g.input("x", {2, 5, 8}), flat = g.input("flat", {5, 8}),
               memory = g.input("memory", {3, 7, 8}), keys = g.input("keys", {2, 7, 8});
  EXPECT_LAYER_ERROR(nn::multi_head_attention("a", x, {.heads = 3}), "multi_head_attention \"a\"",
                     "the size 8 does not divide into 3 heads");
  EXPECT_LAYER_ERROR(nn::multi_head_attention("a", x, {.heads = 0}), "multi_head_attention \"a\"",
                     "heads must be positive, got 0");
  EXPECT_LAYER_ERROR(nn::multi_head_attention("a", x, {.dropout = 2}), "multi_head_attention \"a\"",
                     "dropout must be between 0 and 1, got 2");
  EXPECT_LAYER_ERROR(nn::multi_head_attention("a", flat), "multi_head_attention \"a\"",
                     "x must have 3 axes [batch, sequence, size], got f32[5,8]");
  EXPECT_LAYER_ERROR(nn::multi_head_attention("a", x, flat, flat), "multi_head_attention \"a\"",
                     "keys and values must have 3 axes [batch, sequence, size], got f32[5,8]");
  EXPECT_LAYER_ERROR(
      nn::multi_head_attention("a", x, memory, memory), "multi_head_attention \"a\"",
      "dtypes or batch sizes differ: query f32[2,5,8], key f32[3,7,8], value f32[3,7,8]");
  EXPECT_LAYER_ERROR(nn::multi_head_attention("a", x, keys, x), "multi_head_attention \"a\"",
                     "as many values as keys are needed: key f32[2,7,8], value f32[2,5,8]");
  EXPECT_LAYER_ERROR(nn::multi_head_attention("a", x, keys, 1.0), "multi_head_attention \"a\"",
                     "keys and values must be tensors, not numbers or empty handles");
  EXPECT_LAYER_ERROR(nn::multi_head_attention("a", x, keys, other.input("v", {2, 7, 8})),
                     "multi_head_attention \"a\"", "the inputs belong to different graphs");
  EXPECT_LAYER_ERROR(nn::transformer_encoder_layer("l", x, {.heads = 5}),
                     "transformer_encoder_layer \"l\"", "the size 8 does not divide into 5 heads");
  EXPECT_LAYER_ERROR(nn::transformer_encoder_layer("l", x, {.feed_forward = 0}),
                     "transformer_encoder_layer \"l\"", "feed_forward must be positive, got 0");
  EXPECT_LAYER_ERROR(nn::transformer_encoder_layer("l", flat), "transformer_encoder_layer \"l\"",
                     "x must have 3 axes [batch, sequence, size], got f32[5,8]");
  EXPECT_LAYER_ERROR(nn::dropout(x, -0.5), "dropout", "p must be between 0 and 1, got -0.5");
}

TEST(NnErrors, an_op_inside_a_layer_is_reported_with_the_layers_name_and_the_users_line) {
  Graph g;
  const Tensor x = g.input("x", {2, 3, 5, 5});
  const std::string conv = message_of<TypeError>([&] { nn::conv2d("conv1", x, 4, {9}); });
  EXPECT_NE(conv.find(fmt::format("\"conv1\" (nn_test.cpp:{}): ", __LINE__ - 1)), std::string::npos)
      << conv;
  // Inside a nested layer: the inner layer's dotted name, the outer call's line.
  const Tensor sequence = g.input("sequence", {2, 5, 8});
  const Tensor mask = g.input("mask", {3, 3}, boolean);
  const nn::TransformerEncoderLayerOptions options{.heads = 2, .training = false, .mask = mask};
  const int line = __LINE__ + 2;
  const std::string nested =
      message_of<TypeError>([&] { nn::transformer_encoder_layer("block", sequence, options); });
  EXPECT_NE(nested.find(fmt::format("\"block.self_attn\" (nn_test.cpp:{}): ", line)),
            std::string::npos)
      << nested;
}

TEST(Nn, nodes_carry_the_layers_name_and_the_users_line) {
  Graph g;
  const Tensor x = g.input("x", {2, 3});
  const int line = __LINE__ + 1;
  nn::mlp("net", x, {4, 2});
  const std::string text = to_text(g, {.locations = true});
  EXPECT_NE(text.find("net.0"), std::string::npos) << text;
  EXPECT_NE(text.find(fmt::format("nn_test.cpp:{}", line)), std::string::npos) << text;
  EXPECT_EQ(text.find("linear.cpp"), std::string::npos) << text;
  EXPECT_EQ(to_text(parse_graph(to_text(g))), to_text(g));
}

}  // namespace
}  // namespace pantala::tests
