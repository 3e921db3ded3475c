// Whole models on a Vulkan device against the CPU, and how long a small step takes. They take
// minutes in software: only with PANTALA_VULKAN_TESTS=all (`make test-vulkan`).
#include <chrono>
#include <cmath>
#include <cstdlib>

#include "pantala/session.h"
#include "pantala/zoo.h"
#include "vulkan/vulkan_case.h"

namespace pantala::vulkan_tests {
namespace {

class ModelsOnVulkan : public OnVulkan {
 protected:
  void SetUp() override {
    OnVulkan::SetUp();
    const char* which = std::getenv("PANTALA_VULKAN_TESTS");
    if (!which || std::string_view(which) != "all")
      GTEST_SKIP() << "PANTALA_VULKAN_TESTS is not all";
  }
};

Literal pattern(const Shape& shape) {
  std::vector<double> values(static_cast<std::size_t>(shape.numel()));
  for (std::size_t k = 0; k < values.size(); ++k)
    values[k] = static_cast<double>(k * 7919 % 1009) / 504.5 - 1;
  return Literal::floats(shape, values);
}
Literal classes(std::int64_t items, std::int64_t count) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(items));
  for (std::size_t k = 0; k < values.size(); ++k) values[k] = static_cast<std::int64_t>(k) % count;
  return Literal::ints({items}, values);
}

Session session_of(const zoo::Model& model, const char* input, const std::string& device,
                   Numerics numerics = Numerics::relaxed) {
  Session session = build_session(model.graph, model.loss,
                                  {.device = device,
                                   .numerics = numerics,
                                   .non_finite = NonFiniteGuard::watched,
                                   .optimizer = optim::sgd(0.05)},
                                  {.seed = 3});
  session.set_input(input, pattern(model.input.shape()));
  session.set_input("labels", classes(model.input.shape()[0], 10));
  return session;
}

// The last norms are over 8 numbers each, whose gradients hang on roundings: nothing must be nearer
// than ten times what the CPU's own two ways to compute the step differ by.
TEST_F(ModelsOnVulkan, a_step_of_resnet18_is_that_of_the_cpu) {
  const zoo::Model model = zoo::resnet18_training(
      2, {.form = zoo::ResnetForm::batch_norm, .height = 64, .width = 64, .classes = 10});
  Session cpu = session_of(model, "image", "cpu"), gpu = session_of(model, "image", test_device());
  Session other = session_of(model, "image", "cpu", Numerics::strict);
  for (Session* session : {&cpu, &gpu, &other}) session->step();
  EXPECT_NEAR(gpu.loss(), cpu.loss(), 1e-4 * cpu.loss());
  for (const Leaf& leaf : model.graph.leaves(LeafKind::parameter)) {
    const Literal expected = cpu.parameter(leaf.name), got = gpu.parameter(leaf.name),
                  strict = other.parameter(leaf.name);
    double scale = 0, error = 0, deviation = 0;
    for (std::int64_t k = 0; k < expected.numel(); ++k) {
      scale = std::max(scale, std::fabs(expected.at(k)));
      error = std::max(error, std::fabs(expected.at(k) - got.at(k)));
      deviation = std::max(deviation, std::fabs(expected.at(k) - strict.at(k)));
    }
    EXPECT_LE(error, std::max(1e-2 * scale + 1e-6, 10 * deviation)) << leaf.name;
  }
}

TEST_F(ModelsOnVulkan, a_step_of_a_small_network_takes_at_most_2_ms) {
  const zoo::Model model =
      zoo::mlp({.batch = 16, .inputs = 128, .hidden = {64, 64}, .classes = 10});
  Session session = session_of(model, "x", test_device());
  const std::vector<float> x(16 * 128, 0.5F);
  const std::vector<std::int64_t> labels(16, 3);
  double best = 1e9;
  for (int step = 0; step < 300; ++step) {
    const auto begin = std::chrono::steady_clock::now();
    session.set_input("x", x);
    session.set_input("labels", labels);
    session.step();
    EXPECT_TRUE(std::isfinite(session.loss()));
    const std::chrono::duration<double, std::milli> taken =
        std::chrono::steady_clock::now() - begin;
    best = std::min(best, taken.count());
  }
  RecordProperty("milliseconds", std::to_string(best));
  EXPECT_LE(best, 2.0);
}

}  // namespace
}  // namespace pantala::vulkan_tests
