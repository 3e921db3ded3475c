// Whole models: exported (which reads and runs the file), read again, and what goes wrong.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "io/file.h"
#include "pantala/error.h"
#include "pantala/onnx.h"
#include "pantala/ops.h"
#include "pantala/session.h"
#include "pantala/zoo/presets.h"
#include "recorded_models.h"
#include "support/errors.h"
#include "support/temporary.h"

namespace pantala::tests::export_models_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Graph two_layers() {
  Graph g;
  const Tensor x = g.input("x", {2, 3});
  const Tensor h = relu(linear(x, g.parameter("fc1.weight", {4, 3}), g.parameter("fc1.bias", {4})));
  const Tensor logits = linear(h, g.parameter("fc2.weight", {5, 4}), {});
  g.output("logits", logits);
  g.output("hidden", h);
  g.output("loss", cross_entropy(logits, g.input("labels", {2}, i64)));
  return g;
}
Weights weights_of(const Graph& graph) {
  return build_inference_session(graph, {}, {.seed = 1}).weights();
}

// Small items, where a model takes them: the layers are those of the preset.
struct PresetCase {
  const char* name;
  Shape item;
};
class ExportPreset : public ::testing::TestWithParam<PresetCase> {};

TEST_P(ExportPreset, comes_back) {
  const tests::TemporaryFolder folder;
  const zoo::Model model =
      zoo::preset(GetParam().name).make({.batch = 2, .item = GetParam().item, .training = false});
  const Weights weights = weights_of(model.graph);
  onnx::export_model(model.graph, weights, folder.file("model.onnx"));  // runs and compares it
  const onnx::Model again = onnx::import_model(folder.file("model.onnx"));
  std::vector<std::string> names = weights.names();
  std::erase_if(names, [](const auto& n) { return n.ends_with("num_batches_tracked"); });  // unread
  EXPECT_EQ(again.weights.names(), names);
  ASSERT_EQ(again.graph.outputs().size(), 1U);
  EXPECT_EQ(again.graph.outputs()[0].first, "logits");
  EXPECT_EQ(again.graph.leaves(LeafKind::input).size(), 1U);  // no labels
}

INSTANTIATE_TEST_SUITE_P(zoo, ExportPreset,
                         ::testing::Values(PresetCase{"mlp", {}}, PresetCase{"lenet", {}},
                                           PresetCase{"resnet18", {3, 32, 32}},
                                           PresetCase{"resnet18_folded", {3, 32, 32}},
                                           PresetCase{"resnet50", {3, 32, 32}},
                                           PresetCase{"whisper-tiny", {80, 21}},
                                           PresetCase{"llama-bytes", {12}}),
                         [](const auto& preset) {
                           std::string name = preset.param.name;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(ExportModels, recorded_transformers_come_back) {
  const tests::TemporaryFolder folder;
  for (const char* name : {"whisper_encoder", "llama", "bert_dynamo"}) {
    const RecordedModel recorded = recorded_model(name);
    const onnx::Model model = onnx::import_model(recorded.file, name);
    onnx::export_model(model.graph, model.weights, folder.file("model.onnx"));
  }
}

TEST(ExportModels, bias_and_weight_become_one_operator) {
  const Graph g = two_layers();
  const tests::TemporaryFolder folder;
  onnx::export_model(g, weights_of(g), folder.file("model.onnx"));
  const onnx::Summary summary = onnx::summarize(folder.file("model.onnx"));
  const std::map<std::string, std::int64_t> expected{{"Gemm", 2}, {"Relu", 1}};
  EXPECT_EQ(summary.operators, expected);
  EXPECT_EQ(summary.tensors.size(), 3U);
  EXPECT_EQ(summary.opset, 17);
  EXPECT_EQ(summary.inputs.at(0).str(), "f32[2,3]");
}

TEST(ExportModels, loss_and_what_needs_labels_are_left_out_unless_asked_for) {
  const Graph g = two_layers();
  const tests::TemporaryFolder folder;
  const std::string file = folder.file("model.onnx");
  const auto names = [&] {
    std::vector<std::string> all;
    for (const onnx::Summary::Value& output : onnx::summarize(file).outputs)
      all.push_back(output.name);
    return all;
  };
  onnx::export_model(g, weights_of(g), file);
  EXPECT_THAT(names(), ElementsAre("logits", "hidden"));
  onnx::export_model(g, weights_of(g), file, {.outputs = {"loss"}});
  EXPECT_THAT(names(), ElementsAre("loss"));
  EXPECT_EQ(onnx::summarize(file).inputs.size(), 2U);
  EXPECT_THAT(message_of<TypeError>(
                  [&] { onnx::export_model(g, weights_of(g), file, {.outputs = {"logit"}}); }),
              HasSubstr("did you mean 'logits'?"));
}

TEST(ExportModels, outputs_may_be_inputs_constants_and_one_value_twice) {
  Graph g;
  const Tensor x = g.input("x", {2}), y = x * 2.0;
  g.output("copy", x);
  g.output("a", y);
  g.output("b", y);
  g.output("seven", g.constant(7, {3}));
  const tests::TemporaryFolder folder;
  onnx::export_model(g, Weights(), folder.file("model.onnx"));
  EXPECT_EQ(onnx::summarize(folder.file("model.onnx")).outputs.size(), 4U);
}

TEST(ExportModels, large_weights_lie_beside_the_file) {
  Graph g;
  g.output("y", matmul(g.input("x", {1, 32}), g.parameter("w", {32, 32}, init::normal(1))));
  const tests::TemporaryFolder folder;
  onnx::export_model(g, weights_of(g), folder.file("model.onnx"), {.max_inline_bytes = 1024});
  EXPECT_EQ(std::filesystem::file_size(folder.file("model.onnx.data")), 4096U);
  EXPECT_LT(std::filesystem::file_size(folder.file("model.onnx")), 1024U);
  EXPECT_EQ(onnx::import_model(folder.file("model.onnx")).weights.read("w"),
            weights_of(g).read("w"));
  int entries = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder.path()))
    ++entries;
  EXPECT_EQ(entries, 2);
}

TEST(ExportModels, all_ops_that_onnx_lacks_are_listed_and_nothing_is_written) {
  Graph g;
  const Tensor x = g.input("x", {4, 2}), index = g.input("index", {4}, i64);
  g.output("y", scatter_add(dropout(x, 0.5), index, x, 0));
  const tests::TemporaryFolder folder;
  const std::string message = message_of<UnsupportedError>(
      [&] { onnx::export_model(g, Weights(), folder.file("model.onnx")); });
  EXPECT_THAT(message, HasSubstr("ops are not said in ONNX operators of version 17"));
  EXPECT_THAT(message, HasSubstr("scatter_add, first at"));
  EXPECT_THAT(message, HasSubstr("random_bits, first at"));
  EXPECT_FALSE(std::filesystem::exists(folder.file("model.onnx")));
}

TEST(ExportModels, weights_that_do_not_fit_are_listed) {
  const Graph g = two_layers();
  Weights weights = weights_of(g);
  weights.rename("fc1.bias", "fc1.bais");
  weights.set("fc2.weight", Literal(Type{f32, {5, 3}}));
  EXPECT_EQ(message_of<TypeError>([&] { onnx::export_model(g, weights, "nowhere.onnx"); }),
            "export: the weights do not fit the graph:\n"
            "  fc1.bias f32[4] is missing; did you mean 'fc1.bais'?\n"
            "  fc2.weight is f32[5,4], but f32[5,3] is given");
  EXPECT_EQ(
      message_of<TypeError>([&] { onnx::export_model(g, weights, "nowhere.onnx", {.opset = 7}); }),
      "export: opset must be between 14 and 21, got 7");
}

}  // namespace
}  // namespace pantala::tests::export_models_test
