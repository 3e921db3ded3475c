// Training on a Vulkan device: every optimizer, alone and with all that can stand around it, moves
// weights and states as on the CPU, and the same training has the same bits every time.
#include <gmock/gmock.h>

#include <cmath>

#include "pantala/optim.h"
#include "support/trainer_case.h"
#include "vulkan/vulkan_case.h"

namespace pantala::vulkan_tests {
namespace {

class TrainingOnVulkan : public OnVulkan {};

constexpr std::int64_t kBatch = 8;

Session session_on(const std::string& device, const optim::Optimizer& optimizer,
                   const TrainingStepOptions& training) {
  const Graph graph = tests::mlp_graph(kBatch, Phase::training);
  return build_session(graph, graph.output("loss"),
                       {.device = device, .optimizer = optimizer, .training = training},
                       {.seed = 3});
}

void train(Session& session, int steps) {
  for (int k = 0; k < steps; ++k) {
    const data::Batch batch = tests::random_batch(kBatch, static_cast<std::uint64_t>(k));
    session.set_input("x", batch.data.elements());
    session.set_input("labels", batch.labels.elements());
    session.step();
  }
}

void expect_near(const std::string& name, const Literal& got, const Literal& expected) {
  double scale = 1e-3;
  for (std::int64_t k = 0; k < expected.numel(); ++k)
    scale = std::max(scale, std::fabs(expected.at(k)));
  for (std::int64_t k = 0; k < expected.numel(); ++k)
    ASSERT_LE(std::fabs(got.at(k) - expected.at(k)), 1e-4 * scale)
        << name << '[' << k << "] is " << got.at(k) << ", on the CPU " << expected.at(k);
}

// Weights, moments and averages after some steps, and that there was something to compare.
void expect_as_on_the_cpu(const optim::Optimizer& optimizer, const TrainingStepOptions& training) {
  Session cpu = session_on("cpu", optimizer, training),
          gpu = session_on(test_device(), optimizer, training);
  const Literal before = gpu.parameter("fc1.weight");
  for (Session* session : {&cpu, &gpu}) train(*session, 6);
  EXPECT_FALSE(gpu.parameter("fc1.weight") == before);
  for (const std::string& name : cpu.parameters())
    expect_near(name, gpu.parameter(name), cpu.parameter(name));
  for (const std::string& name : cpu.states()) expect_near(name, gpu.state(name), cpu.state(name));
}

TEST_F(TrainingOnVulkan, with_every_optimizer_is_as_on_the_cpu) {
  ASSERT_GE(optim::descriptions().size(), 11U);
  for (const optim::OptimizerDescription& described : optim::descriptions()) {
    SCOPED_TRACE(described.name);
    expect_as_on_the_cpu(optim::from_options(described.name, {{"lr", 0.02}}), {});
  }
}

TEST_F(TrainingOnVulkan, with_clipping_averages_and_groups_is_as_on_the_cpu) {
  const TrainingStepOptions all{
      .groups = {{.pattern = "fc1.bias", .frozen = true},
                 {.pattern = "*.bias", .lr_factor = 2, .weight_decay = 0.0},
                 {.pattern = "fc2.*", .lr_factor = 0.5, .weight_decay = 0.1}},
      .clip = {.norm = 0.5, .value = 0.1},
      .ema_decay = 0.9};
  for (const optim::Optimizer& optimizer : {optim::adamw(0.02), optim::sgd(0.05, {.momentum = 0.9}),
                                            optim::lion(0.01), optim::lamb(0.02)}) {
    SCOPED_TRACE(testing::PrintToString(optimizer));
    expect_as_on_the_cpu(optimizer, all);
  }
  Session session = session_on(test_device(), optim::adamw(0.02), all);
  const Literal frozen = session.parameter("fc1.bias");
  train(session, 2);
  EXPECT_EQ(session.parameter("fc1.bias"), frozen);
  EXPECT_THAT(session.states(), testing::Contains("ema.fc1.weight"));
}

// The bits of weights and moments of the model after some steps.
std::vector<Literal> trained(const zoo::Model& model, const std::string& input,
                             const Literal& values, const Literal& labels) {
  Session session =
      build_session(model.graph, model.loss,
                    {.device = test_device(), .optimizer = optim::adamw(1e-3)}, {.seed = 3});
  session.set_input(input, values);
  session.set_input("labels", labels);
  for (int step = 0; step < 3; ++step) session.step();
  std::vector<Literal> all;
  for (const std::string& name : session.parameters()) all.push_back(session.parameter(name));
  for (const std::string& name : session.states()) all.push_back(session.state(name));
  return all;
}

Literal numbers_below(const Shape& shape, std::int64_t below) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(shape.numel()));
  for (std::size_t k = 0; k < numbers.size(); ++k)
    numbers[k] = static_cast<std::int64_t>(k * 7919 % 1009) % below;
  return Literal::ints(shape, numbers);
}

void expect_the_same_again(const zoo::Model& model, const std::string& input, const Literal& values,
                           const Literal& labels) {
  const std::vector<Literal> once = trained(model, input, values, labels),
                             again = trained(model, input, values, labels);
  EXPECT_GT(once.size(), 10U);
  EXPECT_EQ(once, again);
}

TEST_F(TrainingOnVulkan, of_lenet_has_the_same_bits_every_time) {
  std::vector<double> image(4 * 28 * 28);
  for (std::size_t k = 0; k < image.size(); ++k) image[k] = static_cast<double>(k % 251) / 251;
  expect_the_same_again(zoo::lenet({.batch = 4}), "x", Literal::floats({4, 1, 28, 28}, image),
                        numbers_below({4}, 10));
}

// The size of the fixture smollm2_small.
TEST_F(TrainingOnVulkan, of_a_small_language_model_has_the_same_bits_every_time) {
  if (!wants_all()) GTEST_SKIP() << "PANTALA_VULKAN_TESTS is not all";
  const zoo::LlamaConfig config{
      .vocabulary = 512, .hidden = 96, .intermediate = 256, .layers = 2, .heads = 6, .kv_heads = 3};
  expect_the_same_again(zoo::llama(config, {.batch = 2, .sequence = 24}), "tokens",
                        numbers_below({2, 24}, 512), numbers_below({2, 24}, 512));
}

}  // namespace
}  // namespace pantala::vulkan_tests
