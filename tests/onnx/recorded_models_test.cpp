// Models that PyTorch exported, with both of its exporters: what they compute here is what PyTorch
// recorded. One of them is trained from its file and exported again.
#include "recorded_models.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "pantala/onnx.h"
#include "pantala/ops.h"
#include "pantala/session.h"
#include "support/temporary.h"

namespace pantala::tests::recorded_models_test {
namespace {

constexpr double kTolerance = 1e-4;  // of the largest magnitude

void expect_recorded(const Literal& got, const io::OrderedJson& expected) {
  ASSERT_EQ(got.shape().vec(), expected.at("shape").get<std::vector<std::int64_t>>());
  const double bound = kTolerance * expected.at("largest").get<double>();
  const auto head = expected.at("values").get<std::vector<double>>(),
             tail = expected.at("tail").get<std::vector<double>>();
  double squares = 0;
  for (const double value : got.f()) squares += value * value;
  const auto norm = expected.at("norm").get<double>();
  EXPECT_NEAR(std::sqrt(squares), norm, kTolerance * norm);
  for (std::size_t k = 0; k < head.size(); ++k) ASSERT_NEAR(got.f()[k], head[k], bound) << k;
  const std::size_t behind = got.f().size() - tail.size();
  for (std::size_t k = 0; k < tail.size(); ++k)
    ASSERT_NEAR(got.f()[behind + k], tail[k], bound) << behind + k;
}

class RecordedModels : public ::testing::TestWithParam<std::string> {};

TEST_P(RecordedModels, compute_what_pytorch_recorded) {
  const RecordedModel recorded = recorded_model(GetParam());
  const onnx::Model model = onnx::import_model(recorded.file, recorded.name);
  Session session = build_inference_session(model.graph);
  session.load_weights(model.weights);
  for (const auto& [name, value] : recorded.inputs) session.set_input(name, value);
  session.step();
  for (const auto& [name, expected] : recorded.outputs.items())
    expect_recorded(session.output(name), expected);
}

INSTANTIATE_TEST_SUITE_P(onnx, RecordedModels, ::testing::ValuesIn(recorded_models()),
                         [](const auto& test) { return test.param; });

// Ten steps of a ResNet-18 in training form: running statistics move, the loss falls; the
// evaluation form with the new weights is exported, and computes the same when it is read again.
TEST(TrainedFromOnnx, resnet18_learns_and_is_exported_again) {
  const RecordedModel recorded = recorded_model("resnet18");
  onnx::Model model = onnx::import_model(recorded.file, recorded.name, {.training = true});
  const Tensor labels = model.graph.input("labels", {2}, i64);
  const Tensor loss = cross_entropy(model.graph.output("logits"), labels);
  Session session =
      build_session(model.graph, loss, {.optimizer = optim::sgd(1e-3, {.momentum = 0.9})});
  session.load_weights(model.weights);
  session.set_input("input", recorded.inputs.at("input"));
  session.set_input("labels", Literal::ints({2}, {7, 421}));
  std::vector<double> losses;
  for (int step = 0; step < 10; ++step) {
    session.step();
    losses.push_back(session.loss());
  }
  EXPECT_LT(losses.back(), 0.5 * losses.front());
  for (std::size_t k = 1; k < losses.size(); ++k) EXPECT_LT(losses[k], losses[k - 1]) << k;

  const Weights trained = session.weights();
  EXPECT_NE(trained.read("bn1.running_mean"), model.weights.read("bn1.running_mean"));
  const onnx::Model evaluation = onnx::import_model(recorded.file, recorded.name);
  const tests::TemporaryFolder folder;
  onnx::export_model(evaluation.graph, trained, folder.file("trained.onnx"));
  const onnx::Model again = onnx::import_model(folder.file("trained.onnx"));
  EXPECT_EQ(again.weights.names(), trained.names());
  for (const std::string& name : trained.names())
    EXPECT_EQ(again.weights.read(name), trained.read(name)) << name;
}

}  // namespace
}  // namespace pantala::tests::recorded_models_test
