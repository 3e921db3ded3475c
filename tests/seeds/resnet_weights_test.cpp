// Section 2 of the checklist: ResNet, what the networks compute and how weights are folded.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "pantala/error.h"
#include "pantala/session.h"
#include "pantala/zoo/resnet.h"
#include "support/errors.h"
#include "support/fill.h"
#include "support/numbers.h"
#include "support/temporary.h"

namespace pantala::tests::resnet_weights_test {
namespace {

using zoo::ResnetForm;
using zoo::ResnetOptions;

// Small networks that run.
constexpr ResnetOptions kSmall = {.height = 40, .width = 33, .classes = 12};
ResnetOptions small(ResnetForm form, zoo::Labels labels = zoo::Labels::classes) {
  ResnetOptions options = kSmall;
  options.form = form;
  options.labels = labels;
  return options;
}
Session session_of(const Graph& graph) { return Session(compile(graph, {.threads = 2})); }
Literal images(std::int64_t batch) {
  return fill("images", {batch, kSmall.channels, kSmall.height, kSmall.width}, 1.7);
}
Literal run(Session& session, const Literal& image) {
  session.set_input("image", image);
  session.step();
  return session.output("logits");
}

TEST(Resnet, R11_fused_biases_load_through_a_name_map) {
  Session session = session_of(zoo::resnet18(1, small(ResnetForm::folded)).graph);
  Weights weights = session.weights();
  LoadWeightsOptions mapped;
  for (const std::string& name : weights.names()) {
    if (!name.ends_with(".bias") || name == "fc.bias") continue;
    const std::string norm = name.substr(0, name.size() - std::string_view(".bias").size());
    weights.set(name, fill(name, weights.type(name).shape));
    weights.rename(name, norm + ".fused_bias");
    mapped.prefixes.emplace_back(norm + ".fused_bias", name);
  }
  EXPECT_THROW(session.load_weights(weights), TypeError);
  EXPECT_EQ(session.load_weights(weights, mapped).loaded.size(), 42u);
  for (const char* name : {"bn1.bias", "layer1.0.bn2.bias", "layer2.0.downsample.1.bias"})
    EXPECT_EQ(session.parameter(name), fill(name, session.parameter(name).shape())) << name;
}

TEST(Resnet, R20_labels_as_numbers_or_as_probabilities) {
  const auto loss = [](zoo::Labels kind, const Literal& labels) {
    Session session = session_of(zoo::resnet18_training(3, small(ResnetForm::folded, kind)).graph);
    session.set_input("image", images(3));
    session.set_input("labels", labels);
    session.step();
    return session.output_scalar("loss");
  };
  std::vector<double> one_hot(3 * 12);
  one_hot[0 * 12 + 7] = one_hot[1 * 12 + 0] = one_hot[2 * 12 + 11] = 1;
  const double numbers = loss(zoo::Labels::classes, ints({3}, {7, 0, 11}));
  EXPECT_GT(numbers, 0.1);
  EXPECT_NEAR(loss(zoo::Labels::probabilities, floats({3, 12}, one_hot)), numbers, 1e-5);
}

TEST(Resnet, R21_folding) {
  const auto [weight, bias] =
      zoo::fold_batch_norm(floats({1, 1, 1, 1}, {0.25}), floats({1}, {4}), floats({1}, {5}),
                           floats({1}, {1.5}), floats({1}, {3}), 1);
  EXPECT_EQ(weight, floats({1, 1, 1, 1}, {0.5}));
  EXPECT_EQ(bias, floats({1}, {2}));
}

TEST(Resnet, R21_a_bias_of_the_convolution_is_folded_too) {
  Weights weights;
  weights.set("conv1.weight", floats({1, 1, 1, 1}, {0.25}));
  weights.set("conv1.bias", floats({1}, {3}));
  for (const auto& [name, value] : {std::pair{"weight", 4.0}, std::pair{"bias", 5.0},
                                    std::pair{"running_mean", 1.0}, std::pair{"running_var", 4.0}})
    weights.set(std::string("bn1.") + name, floats({1}, {value}));
  const Weights folded = zoo::fold_resnet(weights, 0);
  EXPECT_EQ(folded.names(), (std::vector<std::string>{"bn1.bias", "conv1.weight"}));
  EXPECT_EQ(folded.read("conv1.weight").at(0), 0.5);            // f = 4 / 2
  EXPECT_EQ(folded.read("bn1.bias").at(0), 5 + (3 - 1) * 2.0);  // beta + (b - mean) f
}

TEST(Resnet, R22_sizes_of_what_is_folded) {
  const Literal weight = fill("weight", {5, 3, 2, 4});
  const auto vector = [](const char* name) { return fill(name, {5}); };
  const Literal var = floats({5}, {1, 2, 3, 4, 5});
  const auto folded =
      zoo::fold_batch_norm(weight, vector("gamma"), vector("beta"), vector("mean"), var, 0.5);
  EXPECT_EQ(folded.weight.type(), weight.type());
  EXPECT_EQ(folded.bias.type().str(), "f32[5]");
  for (std::int64_t k = 0; k < weight.numel(); ++k) {
    const std::int64_t channel = k / 24;
    const double f = vector("gamma").at(channel) / std::sqrt(var.at(channel) + 0.5);
    EXPECT_NEAR(folded.weight.at(k), weight.at(k) * f, 1e-7);
    EXPECT_NEAR(folded.bias.at(channel),
                vector("beta").at(channel) - vector("mean").at(channel) * f, 1e-7);
  }
}

TEST(Resnet, R23_what_cannot_be_folded) {
  const Literal weight = fill("weight", {2, 1, 3, 3}), ones = floats({2}, {1, 1});
  const auto complaint = [&](const Literal& gamma, const Literal& var, double eps) {
    const Literal before = gamma;
    const std::string message =
        message_of<TypeError>([&] { zoo::fold_batch_norm(weight, gamma, ones, ones, var, eps); });
    EXPECT_EQ(gamma, before);
    EXPECT_EQ(weight, fill("weight", {2, 1, 3, 3}));
    return message;
  };
  EXPECT_EQ(complaint(floats({3}, {1, 1, 1}), ones, 1e-5),
            "fold_batch_norm: gamma must be [2], one float per output channel, got f32[3]");
  EXPECT_EQ(complaint(ones, floats({1}, {1}), 1e-5),
            "fold_batch_norm: var must be [2], one float per output channel, got f32[1]");
  EXPECT_EQ(complaint(ones, floats({2}, {1, -2}), 1),
            "fold_batch_norm: var + eps must be positive, but it is -2 + 1 of channel 1");
  EXPECT_THROW(zoo::fold_batch_norm(weight, ones, ones, ones, floats({2}, {0, 1}), 0), TypeError);
}

// Values for all tensors of a trained network.
Weights trained_weights(const Graph& graph) {
  Weights weights;
  for (const Leaf& leaf : graph.leaves(LeafKind::parameter)) {
    const bool scale = leaf.value.rank() == 1 && leaf.name.ends_with(".weight");
    const auto fan_in = [&] { return static_cast<double>(init::fans(leaf.value.shape()).in); };
    weights.set(leaf.name,
                tools::make({.name = leaf.name,
                             .shape = leaf.value.shape(),
                             .bound = leaf.value.rank() == 1 ? 0.2 : std::sqrt(3 / fan_in()),
                             .offset = scale ? 1.0 : 0.0}));
  }
  for (const Leaf& leaf : graph.leaves(LeafKind::state)) {
    const bool var = leaf.name.ends_with("var");
    weights.set(leaf.name, leaf.value.dtype() == i64 ? Literal::integer(100)
                                                     : tools::make({.name = leaf.name,
                                                                    .shape = leaf.value.shape(),
                                                                    .bound = 0.5,
                                                                    .offset = var ? 1.0 : 0.0}));
  }
  return weights;
}

TEST(Resnet, R24_the_folded_twin) {
  const Graph full = zoo::resnet18(2, small(ResnetForm::batch_norm)).graph;
  const tests::TemporaryFolder folder;
  trained_weights(full).save(folder.file("resnet18.safetensors"));
  const Weights file = Weights::open(folder.file("resnet18.safetensors"));
  Session original = session_of(full),
          twin = session_of(zoo::resnet18(2, small(ResnetForm::folded)).graph);
  original.load_weights(file);
  EXPECT_EQ(twin.load_weights(zoo::fold_resnet(file)).loaded.size(), 42u);
  const Literal expected = run(original, images(2)), got = run(twin, images(2));
  double largest = 0, error = 0;
  for (std::int64_t k = 0; k < expected.numel(); ++k) {
    largest = std::max(largest, std::abs(expected.at(k)));
    error = std::max(error, std::abs(expected.at(k) - got.at(k)));
  }
  EXPECT_GT(largest, 0.1);
  EXPECT_LT(error, 1e-4 * largest);
  EXPECT_TRUE(zoo::fold_resnet(file, 1e-5, [](std::string_view norm) {
                return fmt::format("{}.fused_bias", norm);
              }).contains("layer2.0.downsample.1.fused_bias"));
}

TEST(Resnet, R25_nothing_in_gives_the_last_bias) {
  // Biases begin at 0.
  Session session = session_of(zoo::resnet18(2, small(ResnetForm::folded)).graph);
  session.set_parameter("fc.bias", fill("fc.bias", {12}));
  const Literal logits = run(session, Literal({f32, images(2).shape()}));
  for (std::int64_t k = 0; k < logits.numel(); ++k)
    EXPECT_EQ(logits.at(k), fill("fc.bias", {12}).at(k % 12));
}

}  // namespace
}  // namespace pantala::tests::resnet_weights_test
