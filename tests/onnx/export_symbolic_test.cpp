// Files for any batch size, and what goes with a file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "pantala/error.h"
#include "pantala/onnx.h"
#include "pantala/ops.h"
#include "pantala/session.h"
#include "pantala/zoo/presets.h"
#include "support/errors.h"
#include "support/temporary.h"

namespace pantala::tests::export_symbolic_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

Weights weights_of(const Graph& graph) {
  return build_inference_session(graph, {}, {.seed = 1}).weights();
}

struct PresetCase {
  const char* name;
  Shape item;
  bool run = true;  // whether the export runs file and graph, for batches of 1 and 3
};
class ExportAnyBatch : public ::testing::TestWithParam<PresetCase> {};

TEST_P(ExportAnyBatch, has_a_symbolic_size) {
  const TemporaryFolder folder;
  const auto graph = [](std::int64_t batch) {
    return zoo::preset(GetParam().name)
        .make({.batch = batch, .item = GetParam().item, .training = false})
        .graph;
  };
  const onnx::ExportedBatch batch = onnx::export_model(
      graph, weights_of(graph(1)), folder.file("model.onnx"), {.verify = GetParam().run});
  EXPECT_TRUE(batch.symbolic) << batch.reason;
  const onnx::Summary summary = onnx::summarize(folder.file("model.onnx"));
  ASSERT_EQ(summary.inputs.size(), 1U);
  for (const onnx::Summary::Value& value : {summary.inputs[0], summary.outputs[0]})
    EXPECT_EQ(value.axes->at(0).symbol, "batch") << value.str();
  const onnx::Model five = onnx::import_model(folder.file("model.onnx"), {.sizes = {{"batch", 5}}});
  EXPECT_EQ(five.graph.output("logits").type(), graph(5).output("logits").type());
}

INSTANTIATE_TEST_SUITE_P(zoo, ExportAnyBatch,
                         ::testing::Values(PresetCase{"mlp", {}}, PresetCase{"lenet", {}},
                                           PresetCase{"resnet18", {3, 32, 32}, false},
                                           PresetCase{"whisper-tiny", {80, 21}, false},
                                           PresetCase{"llama-bytes", {4}}),
                         [](const auto& preset) {
                           std::string name = preset.param.name;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// Sizes that are no mere shape of a Reshape are put together from the input's.
TEST(ExportAnyBatchOf, sizes_that_are_multiples_of_the_batch) {
  const auto graph = [](std::int64_t batch) {
    Graph g;
    const Tensor x = g.input("x", {batch, 2, 3}), w = g.parameter("w", {3}, init::normal());
    const Tensor spread = broadcast_to(reshape(w, {1, 1, 3}), {batch, 4, 3});
    g.output("y", concat({spread, x * w}, 1));
    g.output("rows", reshape(x, {batch * 2, 3}));
    return g;
  };
  const TemporaryFolder folder;
  const onnx::ExportedBatch batch =
      onnx::export_model(graph, weights_of(graph(1)), folder.file("model.onnx"));
  EXPECT_TRUE(batch.symbolic) << batch.reason;
  const onnx::Model seven =
      onnx::import_model(folder.file("model.onnx"), {.sizes = {{"batch", 7}}});
  EXPECT_EQ(seven.graph.output("y").shape(), (Shape{7, 6, 3}));
  EXPECT_EQ(seven.graph.output("rows").shape(), (Shape{14, 3}));
  EXPECT_EQ(onnx::summarize(folder.file("model.onnx")).outputs[1].str(), "f32[?,3]");
}

TEST(ExportAnyBatchOf, a_model_of_one_batch_is_written_as_it_is) {
  const TemporaryFolder folder;
  const auto fixed = [](std::int64_t batch) {
    if (batch != 1) throw TypeError("there are 1 only");
    Graph g;
    g.output("y", g.input("x", {1, 3}) * 2);
    return g;
  };
  const onnx::ExportedBatch one = onnx::export_model(fixed, {}, folder.file("one.onnx"));
  EXPECT_FALSE(one.symbolic);
  EXPECT_EQ(one.reason, "there are 1 only");
  EXPECT_EQ(onnx::summarize(folder.file("one.onnx")).inputs[0].str(), "f32[1,3]");
  // The mean over the batch divides by a number that depends on it.
  const auto mixing = [](std::int64_t batch) {
    Graph g;
    const Tensor x = g.input("x", {batch, 3});
    g.output("y", x - sum(x, {0}, true) * (1.0 / static_cast<double>(batch)));
    return g;
  };
  const onnx::ExportedBatch mixed = onnx::export_model(mixing, {}, folder.file("mixed.onnx"));
  EXPECT_FALSE(mixed.symbolic);
  EXPECT_THAT(mixed.reason, HasSubstr("depends on the batch size"));
}

TEST(ExportMetadata, goes_with_the_file) {
  const TemporaryFolder folder;
  Graph g;
  g.output("y", g.input("x", {2, 3}) * 2);
  onnx::export_model(g, {}, folder.file("m.onnx"),
                     {.metadata = {{"classes", "[\"cat\",\"dog\"]"}, {"task", "classification"}}});
  EXPECT_THAT(onnx::summarize(folder.file("m.onnx")).metadata,
              ElementsAre(Pair("classes", "[\"cat\",\"dog\"]"), Pair("task", "classification")));
}

}  // namespace
}  // namespace pantala::tests::export_symbolic_test
