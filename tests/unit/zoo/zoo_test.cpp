// clang-format off: expected messages name the line of a call, which must not move.
// The models of the zoo: names and shapes, and first loss, logits and gradients against PyTorch
// (recorded in double).
#include "pantala/zoo.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>

#include "pantala/ops.h"
#include "support/errors.h"
#include "support/fill.h"
#include "support/numbers.h"

namespace pantala::tests {
namespace {

std::string parameters_of(const Graph& g) {
  std::string text;
  for (const Leaf& leaf : g.leaves(LeafKind::parameter))
    text += fmt::format("{} {}\n", leaf.name, leaf.value.shape().str());
  return text;
}

std::int64_t parameter_count(const Graph& g) {
  std::int64_t count = 0;
  for (const Leaf& leaf : g.leaves(LeafKind::parameter)) count += leaf.value.numel();
  return count;
}

double norm(const Literal& values) {
  double squares = 0;
  for (const double v : values.f()) squares += v * v;
  return std::sqrt(squares);
}

// What was recorded of a model: the bounds of its parameters, its loss, its logits and the norms of
// its gradients.
struct Recorded {
  std::string model;
  double input_bound;
  std::map<std::string, double> weight_bounds;  // biases are within 0.05
  double loss, logits_norm;
  std::vector<double> logits_head;
  std::map<std::string, double> gradient_norms;
};

void expect_recorded(const zoo::Model& model, const Recorded& expected) {
  const auto name = [&](const std::string& leaf) {
    return fmt::format("a:{}.{}", expected.model, leaf);
  };
  ref::Bindings values{{"x", fill(name("input.x"), model.input.shape(), expected.input_bound)},
                       {"labels", fill_int(name("input.labels"), model.labels.shape(), 0, 10)}};
  std::vector<Tensor> parameters;
  for (const Leaf& leaf : model.graph.leaves(LeafKind::parameter)) {
    const auto bound = expected.weight_bounds.find(leaf.name);
    values[leaf.name] = fill(name(leaf.name), leaf.value.shape(),
                             bound == expected.weight_bounds.end() ? 0.05 : bound->second);
    parameters.push_back(leaf.value);
  }
  const Gradients d = differentiate(model.graph, model.loss, parameters);
  std::vector<Tensor> wanted = {d.at(model.loss), d.at(model.logits)};
  wanted.insert(wanted.end(), d.gradients.begin(), d.gradients.end());
  const std::vector<Literal> results = ref::evaluate(d.graph, wanted, values);
  EXPECT_NEAR(results[0].at(0), expected.loss, 1e-9);
  EXPECT_NEAR(norm(results[1]), expected.logits_norm, 1e-9);
  const std::vector<double> logits = results[1].to_doubles();
  expect_close({logits.begin(), logits.begin() + 4}, expected.logits_head, 1e-9);
  std::size_t k = 2;
  for (const Leaf& leaf : model.graph.leaves(LeafKind::parameter))
    EXPECT_NEAR(norm(results[k++]), expected.gradient_norms.at(leaf.name),
                1e-9 * expected.gradient_norms.at(leaf.name) + 1e-12)
        << leaf.name;
}

TEST(Zoo, mlp_names_and_shapes) {
  const zoo::Model model = zoo::mlp();
  EXPECT_EQ(parameters_of(model.graph),
            "fc1.weight [128,784]\nfc1.bias [128]\nfc2.weight [10,128]\nfc2.bias [10]\n");
  EXPECT_EQ(model.input.type().str(), "f32[64,784]");
  EXPECT_EQ(model.labels.type().str(), "i64[64]");
  EXPECT_EQ(model.graph.output("logits"), model.logits);
  EXPECT_EQ(model.graph.output("loss"), model.loss);
  EXPECT_EQ(model.graph.leaf("x"), model.input);
  EXPECT_EQ(model.graph.leaf("labels"), model.labels);
  EXPECT_EQ(model.logits.type().str(), "f32[64,10]");
  EXPECT_EQ(model.loss.type().str(), "f32[]");
  verify(model.graph);
}

TEST(Zoo, mlp_takes_any_number_of_hidden_layers) {
  EXPECT_EQ(parameters_of(zoo::mlp({.batch = 2, .inputs = 4, .hidden = {}, .classes = 3}).graph),
            "fc1.weight [3,4]\nfc1.bias [3]\n");
  EXPECT_EQ(parameters_of(zoo::mlp({.batch = 2,
                                    .inputs = 4,
                                    .hidden = {5, 6},
                                    .classes = 3,
                                    .activation = nn::Activation::gelu})
                              .graph),
            "fc1.weight [5,4]\nfc1.bias [5]\nfc2.weight [6,5]\nfc2.bias [6]\nfc3.weight "
            "[3,6]\nfc3.bias [3]\n");
}

TEST(Zoo, mlp_matches_py_torch) {
  expect_recorded(
      zoo::mlp({.batch = 32}),
      {.model = "mlp",
       .input_bound = 1,
       .weight_bounds = {{"fc1.weight", 0.06185895577073097}, {"fc2.weight", 0.1530931144952774}},
       .loss = 2.3243871137728394,
       .logits_norm = 7.378107134389474,
       .logits_head = {-0.09789453867777759, 0.7101884598956736, -0.4430653750962783,
                       -0.20324628917202164},
       .gradient_norms = {{"fc1.weight", 1.9536506179227517},
                          {"fc1.bias", 0.13278654299843082},
                          {"fc2.weight", 0.8025862932677531},
                          {"fc2.bias", 0.17389269822242556}}});
}

TEST(Zoo, mlp_regression_names_and_shapes) {
  const zoo::Model model = zoo::mlp({.batch = 5, .inputs = 4, .hidden = {6}, .task = zoo::Task::regression, .targets = 3});
  EXPECT_EQ(parameters_of(model.graph), "fc1.weight [6,4]\nfc1.bias [6]\nfc2.weight [3,6]\nfc2.bias [3]\n");
  EXPECT_EQ(model.labels.type().str(), "f32[5,3]");
  EXPECT_EQ(model.prediction.type().str(), "f32[5,3]");
  EXPECT_EQ(model.loss.type().str(), "f32[]");
  EXPECT_EQ(model.graph.output("prediction"), model.prediction);
  EXPECT_FALSE(model.logits.valid());
  const zoo::Model copy = model;
  EXPECT_EQ(copy.graph.output("prediction"), copy.prediction);
  verify(model.graph);
}

// Predictions are in the labels' units, the loss is of what is learnt.
TEST(Zoo, mlp_regression_scales_its_targets) {
  const zoo::Model model = zoo::mlp({.batch = 2, .inputs = 1, .hidden = {}, .task = zoo::Task::regression, .targets = 2,
                                     .target_scale = {.mean = {100, -1}, .deviation = {10, 0.5}}});
  const std::vector<Literal> results = ref::evaluate(model.graph, {model.prediction, model.loss},
                                                     {{"x", Literal::floats({2, 1}, {1, 2})},
                                                      {"labels", Literal::floats({2, 2}, {110, -1, 120, 0})},
                                                      {"fc1.weight", Literal::floats({2, 1}, {1, 0.5})},
                                                      {"fc1.bias", Literal::floats({2}, {0, 0.5})}});
  expect_close(results[0].to_doubles(), {110, -0.5, 120, -0.25}, 1e-9);
  EXPECT_NEAR(results[1].at(0), (1 + 0.25) / 4, 1e-9);  // scaled: 1, 0, 2, 2 and 1, 1, 2, 1.5
}

TEST(Zoo, mlp_regression_mistakes_are_named) {
  const auto complaint = [](std::int64_t targets, zoo::TargetScale scale) {
    return message_of<TypeError>([&] { zoo::mlp({.task = zoo::Task::regression, .targets = targets, .target_scale = std::move(scale)}); });
  };
  EXPECT_NE(complaint(0, {}).find("targets must be positive, got 0"), std::string::npos);
  EXPECT_NE(complaint(2, {{1}, {1}}).find("target_scale has 1 means and 1 deviations for 2 targets"), std::string::npos);
  EXPECT_NE(complaint(1, {{1}, {0}}).find("deviations above 0; of target 0 the mean is 1 and the deviation 0"), std::string::npos);
  EXPECT_EQ(complaint(1, {{1}, {2}}), "no error");
}

TEST(Zoo, lenet_names_and_shapes) {
  const zoo::Model model = zoo::lenet({.batch = 8});
  EXPECT_EQ(parameters_of(model.graph),
            "conv1.weight [32,1,3,3]\nconv1.bias [32]\nconv2.weight [64,32,3,3]\nconv2.bias "
            "[64]\nfc1.weight [128,3136]\nfc1.bias [128]\nfc2.weight [10,128]\nfc2.bias [10]\n");
  EXPECT_EQ(parameter_count(model.graph), 421642);
  EXPECT_EQ(model.input.type().str(), "f32[8,1,28,28]");
  EXPECT_EQ(model.labels.type().str(), "i64[8]");
  EXPECT_EQ(model.logits.type().str(), "f32[8,10]");
  EXPECT_EQ(zoo::lenet({.batch = 1, .channels = 3, .size = 33, .classes = 7})
                .graph.leaf("fc1.weight")
                .type()
                .str(),
            "f32[128,4096]");
  verify(model.graph);
}

TEST(Zoo, lenet_matches_py_torch) {
  expect_recorded(zoo::lenet({.batch = 8}),
                  {.model = "lenet",
                   .input_bound = 1.7,
                   .weight_bounds = {{"conv1.weight", 0.5773502588272095},
                                     {"conv2.weight", 0.10206207633018494},
                                     {"fc1.weight", 0.030929477885365486},
                                     {"fc2.weight", 0.1530931144952774}},
                   .loss = 2.2283652755611705,
                   .logits_norm = 4.693526329465938,
                   .logits_head = {-0.6004965513714947, 0.9192006788614764, 0.17447046857378412,
                                   -0.04680183524829204},
                   .gradient_norms = {{"conv1.weight", 0.4954199228940459},
                                      {"conv1.bias", 0.13500226758473338},
                                      {"conv2.weight", 3.668616798627864},
                                      {"conv2.bias", 0.18931126555808542},
                                      {"fc1.weight", 16.01029815088688},
                                      {"fc1.bias", 0.2608083972753175},
                                      {"fc2.weight", 3.4170072301654693},
                                      {"fc2.bias", 0.40272486101959104}}});
}

TEST(Zoo, a_copy_has_a_graph_of_its_own) {
  const zoo::Model model = zoo::mlp({.batch = 2, .inputs = 3, .hidden = {}, .classes = 2});
  zoo::Model copy = model;
  EXPECT_EQ(copy.loss.graph(), copy.graph.data());
  EXPECT_NE(copy.loss.graph(), model.loss.graph());
  EXPECT_EQ(copy.loss.id(), model.loss.id());
  copy.graph.output("extra", copy.logits * 2);
  EXPECT_EQ(model.graph.outputs().size(), 2u);
  zoo::Model assigned;
  assigned = copy;
  EXPECT_EQ(assigned.input.graph(), assigned.graph.data());
  EXPECT_FALSE(zoo::Model(zoo::Model()).loss.valid());
}

TEST(Zoo, configurations_that_make_no_sense_are_errors_at_the_users_line) {
  const auto check = [](const std::function<void()>& call, int line, std::string_view model,
                        std::string_view message) {
    EXPECT_EQ(message_of<TypeError>(call),
              fmt::format("{} (zoo_test.cpp:{}): {}", model, line, message));
  };
  check([] { zoo::mlp({.batch = 0}); }, __LINE__, "mlp", "batch must be positive, got 0");
  check([] { zoo::mlp({.inputs = -1}); }, __LINE__, "mlp", "inputs must be positive, got -1");
  const zoo::MlpConfig hidden{.hidden = {4, 0}};
  check([&] { zoo::mlp(hidden); }, __LINE__, "mlp", "every hidden size must be positive, got 0");
  check([] { zoo::mlp({.classes = 0}); }, __LINE__, "mlp", "classes must be positive, got 0");
  check([] { zoo::lenet({.batch = -3}); }, __LINE__, "lenet", "batch must be positive, got -3");
  check([] { zoo::lenet({.channels = 0}); }, __LINE__, "lenet", "channels must be positive, got 0");
  check([] { zoo::lenet({.size = 3}); }, __LINE__, "lenet", "size must be at least 4, got 3");
  check([] { zoo::lenet({.classes = 0}); }, __LINE__, "lenet", "classes must be positive, got 0");
}

}  // namespace
}  // namespace pantala::tests
