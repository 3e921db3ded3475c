// Networks that PyTorch exported before their first step (record_training.py), with both of its
// exporters: trained from the file they do what PyTorch does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "io/file.h"
#include "io/json.h"
#include "pantala/onnx.h"
#include "pantala/ops.h"
#include "pantala/optim.h"
#include "pantala/session.h"

namespace pantala::tests::recorded_training_test {
namespace {

const std::filesystem::path kFolder = std::filesystem::path(PANTALA_FIXTURES_DIR) / "onnx_training";
constexpr double kTolerance = 2e-5;

std::vector<std::string> recorded() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder))
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

class RecordedTraining : public ::testing::TestWithParam<std::string> {
 protected:
  const io::OrderedJson truth_ = io::read_json<io::OrderedJson>(kFolder / (GetParam() + ".json"));
  onnx::Model model_ = onnx::import_model(kFolder / (GetParam() + ".onnx"),
                                          {.sizes = {{"batch", 4}}, .training = true});

  Session session() {
    const Tensor labels = model_.graph.input("labels", {4}, i64);
    const Tensor loss = cross_entropy(model_.graph.output("logits"), labels);
    Session session = build_session(model_.graph, loss,
                                    {.threads = 1, .optimizer = optim::sgd(truth_.at("rate"))});
    session.load_weights(model_.weights);
    session.set_input("x", Literal::floats(Shape(truth_.at("shape").get<IntList>()),
                                           truth_.at("x").get<std::vector<double>>()));
    session.set_input("labels", Literal::ints({4}, truth_.at("labels").get<IntList>()));
    return session;
  }
};

TEST_P(RecordedTraining, does_what_pytorch_does) {
  Session session = this->session();
  for (const double loss : truth_.at("losses")) {
    session.step();
    EXPECT_NEAR(session.loss(), loss, kTolerance);
  }
  for (const auto& [name, values] : truth_.at("statistics").items()) {
    const Literal state = session.state(name);
    for (std::size_t k = 0; k < values.size(); ++k)
      EXPECT_NEAR(state.f()[k], values[k].get<double>(), kTolerance) << name << ' ' << k;
  }
}

// A weight for each of PyTorch's. Those that the exporter computed have names of its own.
TEST_P(RecordedTraining, has_the_same_parameters) {
  std::vector<std::string> names;
  for (const Leaf& leaf : model_.graph.leaves(LeafKind::parameter)) names.push_back(leaf.name);
  std::sort(names.begin(), names.end());
  const auto expected = truth_.at("parameters").get<std::vector<std::string>>();
  EXPECT_EQ(names.size(), expected.size());
  const bool computed = std::any_of(
      names.begin(), names.end(), [](const std::string& name) { return name.starts_with("val_"); });
  if (computed) return;
  EXPECT_EQ(names, expected);
  EXPECT_THAT(model_.warnings, ::testing::IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(onnx, RecordedTraining, ::testing::ValuesIn(recorded()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace pantala::tests::recorded_training_test
