// Recurrent layers: the names, shapes and first values of PyTorch's modules, options, and errors.
// The values stand against PyTorch in tests/fixtures/layers.json.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "pantala/error.h"
#include "pantala/nn.h"
#include "pantala/ops.h"
#include "pantala/text.h"
#include "support/errors.h"
#include "support/fill.h"
#include "support/numbers.h"

namespace pantala::tests {
namespace {

using ::testing::HasSubstr;

std::string parameter_list(const Graph& g) {
  std::string text;
  for (const Leaf& leaf : g.leaves(LeafKind::parameter))
    text += fmt::format("{} {}\n", leaf.name, leaf.value.type().str());
  return text;
}

TEST(RecurrentLayers, an_lstm_has_the_names_and_shapes_of_py_torch) {
  Graph g;
  const nn::LstmOutput y =
      nn::lstm("rnn", g.input("x", {7, 2, 3}), 5, {.layers = 2, .bidirectional = true});
  EXPECT_EQ(y.output.type().str(), "f32[7,2,10]");
  EXPECT_EQ(y.h_n.type().str(), "f32[4,2,5]");
  EXPECT_EQ(y.c_n.type().str(), "f32[4,2,5]");
  EXPECT_EQ(parameter_list(g),
            "rnn.weight_ih_l0 f32[20,3]\nrnn.weight_hh_l0 f32[20,5]\n"
            "rnn.bias_ih_l0 f32[20]\nrnn.bias_hh_l0 f32[20]\n"
            "rnn.weight_ih_l0_reverse f32[20,3]\nrnn.weight_hh_l0_reverse f32[20,5]\n"
            "rnn.bias_ih_l0_reverse f32[20]\nrnn.bias_hh_l0_reverse f32[20]\n"
            "rnn.weight_ih_l1 f32[20,10]\nrnn.weight_hh_l1 f32[20,5]\n"
            "rnn.bias_ih_l1 f32[20]\nrnn.bias_hh_l1 f32[20]\n"
            "rnn.weight_ih_l1_reverse f32[20,10]\nrnn.weight_hh_l1_reverse f32[20,5]\n"
            "rnn.bias_ih_l1_reverse f32[20]\nrnn.bias_hh_l1_reverse f32[20]\n");
}

TEST(RecurrentLayers, gru_and_rnn_have_three_gates_and_none) {
  Graph g;
  const Tensor x = g.input("x", {2, 7, 3}, f64);
  const nn::RecurrentOutput a = nn::gru("a", x, 4, {.bias = false, .batch_first = true}),
                            b = nn::rnn("b", x, 4, nn::Activation::relu);
  EXPECT_EQ(a.output.type().str(), "f64[2,7,4]");
  EXPECT_EQ(a.h_n.type().str(), "f64[1,2,4]");
  EXPECT_EQ(b.h_n.type().str(), "f64[1,7,4]");
  EXPECT_EQ(parameter_list(g),
            "a.weight_ih_l0 f64[12,3]\na.weight_hh_l0 f64[12,4]\n"
            "b.weight_ih_l0 f64[4,3]\nb.weight_hh_l0 f64[4,4]\nb.bias_ih_l0 f64[4]\n"
            "b.bias_hh_l0 f64[4]\n");
}

TEST(RecurrentLayers, first_values_are_uniform_within_one_by_the_root_of_the_hidden_size) {
  Graph g;
  nn::lstm("rnn", g.input("x", {1, 1, 100}), 64);
  const ref::Session session(g, 1);
  for (const char* name : {"weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"}) {
    double largest = 0;
    const Literal values = session.value(fmt::format("rnn.{}", name));
    for (const double v : values.f()) largest = std::max(largest, std::fabs(v));
    EXPECT_LE(largest, 0.125) << name;
    EXPECT_GT(largest, 0.12) << name;
  }
}

TEST(RecurrentLayers, dropout_stands_between_layers_in_training_only) {
  const auto drops = [](const nn::RecurrentLayerOptions& options) {
    Graph g;
    nn::gru("rnn", g.input("x", {2, 3, 4}), 5, options);
    const std::string text = to_text(g);
    std::size_t count = 0;
    for (std::size_t at = 0; (at = text.find("dropout(", at)) != std::string::npos; ++at) ++count;
    return count;
  };
  EXPECT_EQ(drops({.layers = 3, .dropout = 0.5}), 2u);
  EXPECT_EQ(drops({.layers = 3, .dropout = 0.5, .training = false}), 0u);
  EXPECT_EQ(drops({.layers = 1, .dropout = 0.5}), 0u);
}

TEST(RecurrentLayers, one_step_of_an_lstm_by_hand) {
  Graph g;
  const nn::LstmOutput y = nn::lstm("m", g.input("x", {1, 1, 1}), 1);
  ref::Bindings values{{"x", floats({1, 1, 1}, {2})},
                       {"m.weight_ih_l0", floats({4, 1}, {0.5, -1, 0.25, 1})},
                       {"m.weight_hh_l0", floats({4, 1}, {9, 9, 9, 9})},
                       {"m.bias_ih_l0", floats({4}, {0, 0, 0.5, 0})},
                       {"m.bias_hh_l0", floats({4}, {-1, 0, 0, -2})}};
  const double c = 0.5 * std::tanh(1.0);  // input gate sigmoid(0), cell tanh(1)
  expect_close(value_of(g, y.c_n, values), {c});
  expect_close(value_of(g, y.output, values), {0.5 * std::tanh(c)});
}

TEST(RecurrentLayers, a_sequence_in_two_parts_is_the_whole_one) {
  const Literal x = fill("x", {6, 2, 3});
  const auto run = [](const Literal& steps, const std::optional<std::vector<Literal>>& states) {
    Graph g;
    nn::RecurrentLayerOptions options{.layers = 2};
    ref::Bindings values{{"x", steps}};
    if (states) {
      options.h0 = g.input("h", {2, 2, 4});
      options.c0 = g.input("c", {2, 2, 4});
      values["h"] = states->at(1);
      values["c"] = states->at(2);
    }
    const nn::LstmOutput y = nn::lstm("m", g.input("x", steps.shape()), 4, options);
    for (const Leaf& leaf : g.leaves(LeafKind::parameter))
      values[leaf.name] = fill(leaf.name, leaf.value.shape(), 0.5);
    return ref::evaluate(g, {y.output, y.h_n, y.c_n}, values);
  };
  const auto part = [&](std::ptrdiff_t first) {
    const std::vector<double> all = x.to_doubles();
    return floats({3, 2, 3}, {all.begin() + first, all.begin() + first + 18});
  };
  const std::vector<Literal> whole = run(x, {}), front = run(part(0), {}),
                             back = run(part(18), front);
  std::vector<double> output = front[0].to_doubles();
  for (const double v : back[0].to_doubles()) output.push_back(v);
  expect_close(output, whole[0].to_doubles(), 1e-12);
  expect_close(back[2].to_doubles(), whole[2].to_doubles(), 1e-12);
}

TEST(RecurrentLayers, mistakes_are_answered_with_the_layer) {
  Graph g;
  const Tensor x = g.input("x", {3, 2, 4});
  const auto message = [&](auto call) { return message_of<TypeError>(call); };
  EXPECT_THAT(message([&] { nn::lstm("r", g.input("m", {3, 4}), 5); }),
              HasSubstr("x must have 3 axes [steps, batch, size], got f32[3,4]"));
  EXPECT_THAT(message([&] { nn::lstm("r", x, 0); }),
              HasSubstr("the hidden size must be positive, got 0"));
  EXPECT_THAT(message([&] { nn::lstm("r", x, INT64_MAX); }),
              HasSubstr("the hidden size must be at most 1099511627776"));
  EXPECT_THAT(message([&] { nn::gru("r", x, 5, {.layers = 0}); }),
              HasSubstr("layers must be positive, got 0"));
  EXPECT_THAT(message([&] { nn::lstm("r", x, 5, {.h0 = x}); }),
              HasSubstr("h0 must be f32[1,2,5] [layers * directions, batch, hidden], got "
                        "f32[3,2,4]"));
  EXPECT_THAT(message([&] { nn::gru("r", x, 5, {.c0 = x}); }), HasSubstr("c0 belongs to an lstm"));
  EXPECT_THAT(message([&] { nn::rnn("r", x, 5, nn::Activation::gelu); }),
              HasSubstr("the activation must be tanh or relu"));
  EXPECT_THAT(message([&] { nn::lstm("r", g.input("e", {0, 2, 4}), 5); }),
              HasSubstr("x has no steps"));
  EXPECT_THAT(message([&] { nn::lstm("r", x, 5, {.dropout = 1.5}); }),
              HasSubstr("dropout must be between 0 and 1, got 1.5"));
}

TEST(ConvTransposeLayers, have_the_names_shapes_and_first_values_of_py_torch) {
  Graph g;
  const Tensor y = nn::conv_transpose2d("up", g.input("x", {1, 4, 5, 5}), 6, {3, 2},
                                        {.stride = {2}, .padding = {1, 0}, .groups = 2});
  EXPECT_EQ(y.type().str(), "f32[1,6,9,10]");
  EXPECT_EQ(nn::conv_transpose1d("line", g.input("s", {2, 3, 5}), 7, {4},
                                 {.stride = {3}, .output_padding = {1}, .bias = false})
                .type()
                .str(),
            "f32[2,7,17]");
  EXPECT_EQ(parameter_list(g), "up.weight f32[4,3,3,2]\nup.bias f32[6]\nline.weight f32[3,7,4]\n");
  // torch counts out / groups * kernel = 3 * 6 as what feeds an output.
  const ref::Session session(g, 1);
  for (const char* name : {"up.weight", "up.bias"})
    for (const double v : session.value(name).f()) EXPECT_LE(std::fabs(v), 1 / std::sqrt(18.0));
}

TEST(ConvTransposeLayers, mistakes_are_answered_with_the_layer) {
  Graph g;
  const Tensor x = g.input("x", {1, 4, 5, 5});
  EXPECT_THAT(message_of<TypeError>([&] { nn::conv_transpose1d("up", x, 6, {3}); }),
              HasSubstr("x must have 3 axes [batch, channels, length]"));
  EXPECT_THAT(message_of<TypeError>([&] { nn::conv_transpose2d("up", x, 6, {3}, {.groups = 4}); }),
              HasSubstr("6 output channels do not divide into 4 groups"));
}

}  // namespace
}  // namespace pantala::tests
