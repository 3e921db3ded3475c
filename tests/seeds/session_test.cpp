// Section 1 of the checklist: compiled sessions.
#include "pantala/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <string>

#include "base/log.h"
#include "io/file.h"
#include "io/json.h"
#include "pantala/error.h"
#include "pantala/ops.h"
#include "pantala/optim.h"
#include "support/errors.h"
#include "support/temporary.h"
#include "support/training_data.h"

namespace pantala::session_test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using tests::message_of;
using tests::random_floats;

// x [4,3], w [3,2], loss mean(x w).
struct SmallProduct {
  Graph graph;
  Tensor loss;
  SmallProduct() {
    const Tensor x = graph.input("x", {4, 3});
    const Tensor w = graph.parameter("w", {3, 2}, init::normal(0, 1));
    loss = mean(matmul(x, w));
  }
};

// x [4,784], w1 [784,128], b1 [128], ReLU, w2 [128,10], probability labels [4,10], cross entropy.
struct TwoLayers {
  Graph graph;
  Tensor loss;
  explicit TwoLayers(const Initializer& first = init::uniform(-0.05, 0.05)) {
    const Tensor x = graph.input("x", {4, 784});
    const Tensor labels = graph.input("labels", {4, 10});
    const Tensor w1 = graph.parameter("w1", {784, 128}, first);
    const Tensor b1 = graph.parameter("b1", {128}, first);
    const Tensor w2 = graph.parameter("w2", {128, 10}, first);
    const Tensor logits = matmul(relu(matmul(x, w1) + b1), w2);
    graph.output("logits", logits);
    loss = cross_entropy(logits, labels);
  }
};

std::vector<float> one_hot() {
  std::vector<float> labels(40);
  for (std::size_t row = 0; row < 4; ++row) labels[row * 10 + row * 2] = 1;
  return labels;
}

void give_data(Session& session) {
  session.set_input("x", random_floats(4 * 784, 3));
  session.set_input("labels", one_hot());
}

// One weight whose gradient is the input: loss = sum(w g).
struct OneWeight {
  Graph graph;
  Tensor loss;
  OneWeight() {
    const Tensor g = graph.input("g", {1});
    const Tensor w = graph.parameter("w", {1}, init::ones());
    loss = sum(w * g);
  }
};

std::vector<std::string> stage_names(const Report& report) {
  std::vector<std::string> names;
  for (const Report::Stage& stage : report.stages) names.push_back(stage.name);
  return names;
}

// The names of the spans of a trace file.
std::vector<std::string> span_names(const std::filesystem::path& path) {
  std::vector<std::string> names;
  const io::Json trace = io::read_json(path);
  for (const auto& event : trace.at("traceEvents"))
    if (event.at("ph") == "X") names.push_back(event.at("name"));
  return names;
}

TEST(Sessions, T29_a_training_graph_compiles_without_a_device) {
  const SmallProduct m;
  const auto [plan, report] = compile_training_graph(m.graph, m.loss, {.device = "cpu"});
  EXPECT_THAT(stage_names(report), Not(Contains("device")));
  EXPECT_GE(plan.launches(), 1);
}

TEST(Sessions, T30_the_plan_of_a_product_with_gradients) {
  const SmallProduct m;
  const auto [plan, report] = compile_training_graph(m.graph, m.loss, {.observe_gradients = true});
  EXPECT_GE(plan.launches(), 1);
  EXPECT_TRUE(plan.has_loss());
  EXPECT_THAT(plan.inputs(), ElementsAre("x"));
  EXPECT_THAT(plan.parameters(), ElementsAre("w"));
  ASSERT_EQ(plan.parameter_gradients().size(), 1u);
  EXPECT_EQ(plan.parameter_gradients()[0].parameter, "w");
  EXPECT_GT(report.nodes_before, 0);
}

TEST(Sessions, T31_the_gradient_of_a_mean_product) {
  const SmallProduct m;
  Session session = build_session(m.graph, m.loss, {.observe_gradients = true});
  const std::vector<float> x = random_floats(12, 5);
  session.set_input("x", x);
  session.step();
  const Literal gradient = session.gradient("w");
  for (std::size_t k = 0; k < 3; ++k) {
    const double expected = (x[k] + x[3 + k] + x[6 + k] + x[9 + k]) / 8.0;
    for (std::size_t n = 0; n < 2; ++n)
      EXPECT_NEAR(gradient.at(static_cast<std::int64_t>(2 * k + n)), expected, 1e-6);
  }
}

TEST(Sessions, T32_the_plan_of_two_layers) {
  const TwoLayers m;
  const CompiledPlan plan =
      compile_training_graph(m.graph, m.loss, {.observe_gradients = true}).plan;
  EXPECT_EQ(plan.inputs().size(), 2u);
  EXPECT_EQ(plan.parameters().size(), 3u);
  EXPECT_EQ(plan.parameter_gradients().size(), 3u);
  EXPECT_TRUE(plan.has_loss());
}

TEST(Sessions, T33_the_loss_of_zero_parameters_is_the_logarithm_of_ten) {
  const TwoLayers m(init::zeros());
  Session session = build_session(m.graph, m.loss);
  give_data(session);
  session.step();
  session.wait();
  EXPECT_NEAR(session.loss(), 2.302585, 1e-5);
}

TEST(Sessions, T35_a_report_comes_with_the_session_or_is_logged) {
  const TwoLayers m;
  auto [with_report, report] = build_session_with_report(m.graph, m.loss);
  EXPECT_GT(report.nodes_before, 0);
  std::vector<std::string> lines;
  std::optional<Session> logged;
  {
    const logging::Capture capture(logging::Level::info,
                                   [&](logging::Level level, std::string_view text) {
                                     if (level == logging::Level::info) lines.emplace_back(text);
                                   });
    logged = build_session(m.graph, m.loss);
  }
  EXPECT_THAT(lines, Contains(HasSubstr("schedule")));
  for (Session* session : {&with_report, &*logged}) {
    give_data(*session);
    session->step();
  }
  EXPECT_EQ(with_report.loss(), logged->loss());
  EXPECT_EQ(with_report.output("logits"), logged->output("logits"));
}

TEST(Sessions, T36_stages_appear_once_in_order_in_the_report_and_in_the_trace) {
  const TwoLayers m;
  Session session = build_session(m.graph, m.loss, {.optimizer = optim::adam()});
  EXPECT_THAT(stage_names(session.report()),
              ElementsAre("canonicalise", "differentiate", "optimizer", "saturate", "schedule",
                          "codegen", "plan", "device"));
  session.set_timing(true);
  give_data(session);
  session.step();
  session.step();
  const tests::TemporaryFolder folder;
  const std::string file = folder.file("pantala_seed_trace.json");
  session.write_trace(file);
  const std::vector<std::string> spans = span_names(file);
  for (const Report::Stage& stage : session.report().stages)
    EXPECT_EQ(std::count(spans.begin(), spans.end(), stage.name), 1) << stage.name;
  EXPECT_EQ(std::count(spans.begin(), spans.end(), "step"), 2);
  for (const KernelInfo& kernel : session.kernels()) {
    EXPECT_THAT(spans, Contains(kernel.name));
    EXPECT_EQ(kernel.runs, 2) << kernel.name;
  }
}

TEST(Sessions, T37_an_inference_session_has_no_training_buffers) {
  const TwoLayers m;
  Session training = build_session(m.graph, m.loss, {.optimizer = optim::adam()});
  Session inference = build_inference_session(m.graph);
  EXPECT_THAT(inference.states(), testing::IsEmpty());
  EXPECT_THAT(inference.scalars(), testing::IsEmpty());
  EXPECT_EQ(inference.memory_summary().states, 0);
  EXPECT_THAT(inference.outputs(), ElementsAre("logits"));
  EXPECT_THAT(inference.inputs(), ElementsAre("x"));
  EXPECT_LT(inference.kernels().size(), training.kernels().size());
  give_data(training);
  inference.set_input("x", random_floats(4 * 784, 3));
  training.step();
  inference.step();
  const Literal trained = training.output("logits"), inferred = inference.output("logits");
  for (std::int64_t k = 0; k < 40; ++k) EXPECT_NEAR(trained.at(k), inferred.at(k), 1e-5);
}

TEST(Sessions, T41_a_cached_plan_is_neither_differentiated_nor_compiled_again) {
  const TwoLayers m;
  const tests::TemporaryFolder folder;
  const std::string file = folder.file("pantala_seed_cache.plan");
  std::vector<std::string> warnings;
  const logging::Capture capture(
      logging::Level::warning,
      [&](logging::Level, std::string_view text) { warnings.emplace_back(text); });
  const CompileOptions options{.optimizer = optim::sgd(0.1)};
  const auto train = [&](Session session) {
    give_data(session);
    for (int k = 0; k < 3; ++k) session.step();
    return std::pair(session.loss(), stage_names(session.report()));
  };
  const auto [first_loss, first_stages] =
      train(build_session_cached(m.graph, m.loss, options, file));
  EXPECT_THAT(first_stages, Contains("codegen"));
  EXPECT_TRUE(std::filesystem::exists(file));
  const auto [second_loss, second_stages] =
      train(build_session_cached(m.graph, m.loss, options, file));
  for (const char* stage : {"differentiate", "saturate", "codegen"})
    EXPECT_THAT(second_stages, Not(Contains(stage)));
  EXPECT_EQ(first_loss, second_loss);
  EXPECT_THAT(warnings, testing::IsEmpty());
}

TEST(Sessions, T46_an_unknown_input_and_a_wrong_count_are_type_errors) {
  const TwoLayers m;
  Session session = build_session(m.graph, m.loss);
  EXPECT_THAT(message_of<TypeError>([&] { session.set_input("label", one_hot()); }),
              HasSubstr("did you mean 'labels'?"));
  const std::string count =
      message_of<TypeError>([&] { session.set_input("x", random_floats(10, 1)); });
  EXPECT_THAT(count, HasSubstr("3136"));
  EXPECT_THAT(count, HasSubstr("10"));
}

TEST(Sessions, T47_a_learning_rate_acts_from_the_next_step_on) {
  const OneWeight m;
  Session session = build_session(m.graph, m.loss, {.optimizer = optim::sgd(0.1)});
  session.set_input("g", std::vector{1.0F});
  session.step();
  EXPECT_NEAR(session.parameter("w").at(0), 0.9, 1e-7);
  session.set_learning_rate(0.01);
  EXPECT_EQ(session.learning_rate(), 0.01);
  session.step();
  EXPECT_NEAR(session.parameter("w").at(0), 0.89, 1e-7);
}

TEST(Sessions, T48_the_scalars_of_adam_can_be_set_on_an_adam_session_only) {
  const OneWeight m;
  Session adam = build_session(m.graph, m.loss, {.optimizer = optim::adam()});
  adam.set_input("g", std::vector{1.0F});
  adam.set_adam(0.5, 0.8, 0.9, 1e-6);
  EXPECT_EQ(adam.learning_rate(), 0.5);
  EXPECT_EQ(adam.scalar("optim.beta1"), 0.8);
  EXPECT_EQ(adam.scalar("optim.beta2"), 0.9);
  EXPECT_EQ(adam.scalar("optim.eps"), 1e-6);
  adam.step();
  EXPECT_NEAR(adam.parameter("w").at(0), 0.5, 1e-5);  // the first step is the rate itself
  Session sgd = build_session(m.graph, m.loss, {.optimizer = optim::sgd(0.1)});
  EXPECT_THAT(message_of<TypeError>([&] { sgd.set_adam(0.5, 0.8, 0.9, 1e-6); }),
              HasSubstr("optim.beta1"));
  EXPECT_EQ(sgd.learning_rate(), 0.1);
}

TEST(Sessions, T49_without_an_optimizer_there_are_gradients_and_no_updates) {
  const TwoLayers m;
  Session session = build_session(m.graph, m.loss);
  give_data(session);
  std::vector<Literal> before;
  for (const std::string& name : session.parameters()) before.push_back(session.parameter(name));
  session.step();
  session.step();
  std::vector<Literal> after;
  for (const std::string& name : session.parameters()) {
    after.push_back(session.parameter(name));
    const Literal gradient = session.gradient(name);
    EXPECT_EQ(gradient.shape(), after.back().shape());
    double size = 0;
    for (const double g : gradient.f()) size += std::fabs(g);
    EXPECT_GT(size, 0) << name;
  }
  EXPECT_EQ(before, after);
}

}  // namespace
}  // namespace pantala::session_test
