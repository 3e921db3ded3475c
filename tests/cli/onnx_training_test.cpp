// pantala train --from with tokens, and with labels by position and by pixel.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/training.h"
#include "onnx/model_maker.h"
#include "pantala/data.h"
#include "pantala/onnx.h"
#include "pantala/ops.h"
#include "pantala/session.h"
#include "pantala/weights.h"
#include "support/data_files.h"
#include "support/fill.h"

namespace pantala::tests::onnx_training_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr std::int64_t kItems = 32, kLength = 6, kSide = 4;

class TrainFromOnnx : public TrainingTest {
 protected:
  std::string exported(const std::string& name, const onnx::GraphOfBatch& graph) const {
    const Weights weights = build_inference_session(graph(1), {}, {.seed = 1}).weights();
    EXPECT_TRUE(onnx::export_model(graph, weights, file(name), {.verify = false}).symbolic);
    return file(name);
  }
  // Of each token the logits of the next one; with `pooled` one class for all of them.
  std::string token_model(std::int64_t vocabulary, bool pooled = false) const {
    return exported("tokens.onnx", [=](std::int64_t batch) {
      Graph g;
      const Tensor t = g.input("tokens", {batch, kLength}, i64);
      const Tensor table = g.parameter("emb.weight", {vocabulary, 8}, init::normal(0, 0.5)),
                   head = g.parameter("head.weight", {8, vocabulary}, init::normal(0, 0.5));
      const Tensor h = take(table, t, 0);
      g.output("logits", matmul(pooled ? mean(h, {1}) : h, head));
      return g;
    });
  }
  std::string written(const std::string& name, const ::onnx::ModelProto& model) const {
    put_file(file(name), model.SerializeAsString());
    return file(name);
  }
  static ModelMaker& drawn_weight(ModelMaker& maker, const std::string& name, const Sizes& sizes) {
    const std::vector<double> values = fill(name, Shape(sizes), 0.5).to_doubles();
    return maker.weight(name, sizes, std::vector<float>(values.begin(), values.end()));
  }
  std::string npz(data::Array x, data::Array y) const {
    data::write_npy(file("x.npy"), x);
    data::write_npy(file("y.npy"), y);
    put_file(file("data.npz"), zip({{.name = "x.npy", .content = bytes("x.npy")},
                                    {.name = "y.npy", .content = bytes("y.npy")}}));
    return "npz:" + file("data.npz");
  }
  static std::vector<std::int64_t> counted(std::int64_t count, std::int64_t below) {
    std::vector<std::int64_t> list;
    for (std::int64_t k = 0; k < count; ++k) list.push_back((k * k + k / 5) % below);
    return list;
  }
  Outcome train_from(const std::string& model, const std::string& data,
                     std::vector<std::string> more = {}, const std::string& epochs = "8") const {
    std::vector<std::string> words = {"train", "--from",    model,          "--data",    data,
                                      "--out", file("run"), "--batch-size", "8",         "--epochs",
                                      epochs,  "--lr",      "0.05",         "--threads", "1"};
    words.insert(words.end(), more.begin(), more.end());
    return run_pantala(words);
  }
  // What predict --truth puts beside its classes, one position after the other.
  void expect_truths(const std::vector<std::int64_t>& labels) const {
    const Outcome outcome = run_pantala(
        {"predict", file("run"), "--data", "npz:" + file("data.npz"), "--json", "--truth"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    std::istringstream lines(outcome.out);
    std::size_t k = 0;
    for (std::string line; std::getline(lines, line); ++k) {
      ASSERT_LT(k, labels.size());
      const json expected = labels[k] < 0 ? json() : json(labels[k]);
      EXPECT_EQ(json::parse(line).at("truth"), expected) << k;
    }
    EXPECT_EQ(k, labels.size());
  }
  json evaluation() const { return json::parse(bytes("run/result.json")).at("evaluation"); }
};

TEST_F(TrainFromOnnx, text_feeds_an_input_of_tokens) {
  std::string text;
  for (int k = 0; k < 120; ++k) text += "abcd";
  put_file(file("text.txt"), text);
  const Outcome outcome = train_from(token_model(256), "text:" + file("text.txt"),
                                     {"--set", "data.sequence=6", "--set", "optimizer.name=adam"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_GT(evaluation().at("accuracy").get<double>(), 0.9);
  EXPECT_LT(evaluation().at("perplexity").get<double>(), 20);
  const Outcome tried =
      run_pantala({"eval", file("run"), "--data", "text:" + file("text.txt"), "--json"});
  EXPECT_EQ(tried.exit_code, 0) << tried.err;
  const Outcome again = run_pantala({"export", file("run"), "--out", file("again.onnx"), "--json"});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(json::parse(again.out).at("batch"), "any");
  EXPECT_EQ(onnx::summarize(file("again.onnx")).outputs[0].str(), "f32[batch,6,256]");
}

TEST_F(TrainFromOnnx, the_vocabulary_of_a_token_file_is_the_models) {
  std::string tokens;
  for (int k = 0; k < 400; ++k) tokens += little(static_cast<std::uint64_t>(k % 7), 2);
  put_file(file("tokens.bin"), tokens);
  const std::string model = token_model(12);
  EXPECT_EQ(
      train_from(model, "tokens:" + file("tokens.bin"), {"--set", "data.sequence=6"}).exit_code, 0);
  const Outcome longer = train_from(model, "tokens:" + file("tokens.bin"), {"--restart"});
  EXPECT_EQ(longer.exit_code, 2);
  EXPECT_THAT(longer.err, HasSubstr("takes 'tokens' i64[batch,6], 6 tokens; data.sequence is 128"));
  put_file(file("tokens.bin"), tokens + little(12, 2) + tokens);
  const Outcome outcome =
      train_from(model, "tokens:" + file("tokens.bin"), {"--set", "data.sequence=6", "--restart"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("12"));
}

// Positions have weights of their own, and what the mask hides would count 0.
TEST_F(TrainFromOnnx, inputs_beside_the_tokens_get_their_usual_values) {
  const std::string model = exported("bert.onnx", [](std::int64_t batch) {
    Graph g;
    const Tensor t = g.input("input_ids", {batch, kLength}, i64),
                 mask = g.input("attention_mask", {batch, kLength}, i64),
                 places = g.input("position_ids", {batch, kLength}, i64);
    const Tensor words = g.parameter("words", {5, 8}, init::normal(0, 0.5)),
                 rows = g.parameter("rows", {kLength, 8}, init::normal(0, 0.5)),
                 head = g.parameter("head", {8, 5}, init::normal(0, 0.5));
    const Tensor seen = unsqueeze(cast(mask, f32), 2);
    g.output("logits", matmul((take(words, t, 0) + take(rows, places, 0)) * seen, head));
    return g;
  });
  // The class of a position is its place: neither the words nor a hidden position tell it.
  const data::Array x{.shape = {kItems, kLength}, .values = counted(kItems * kLength, 5)};
  std::vector<std::int64_t> classes;
  for (std::int64_t k = 0; k < kItems * kLength; ++k) classes.push_back(k % kLength % 5);
  const Outcome outcome = train_from(model, npz(x, {.shape = {kItems, kLength}, .values = classes}),
                                     {"--set", "optimizer.name=adam"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_GT(evaluation().at("accuracy").get<double>(), 0.9);
}

TEST_F(TrainFromOnnx, tokens_of_arrays_have_a_class_for_each_item_or_position) {
  const data::Array x{.shape = {kItems, kLength}, .values = counted(kItems * kLength, 5)};
  std::vector<std::int64_t> firsts;
  for (std::int64_t k = 0; k < kItems; ++k)
    firsts.push_back(
        std::get<std::vector<std::int64_t>>(x.values)[static_cast<std::size_t>(k * kLength)]);
  Outcome outcome = train_from(token_model(5, true), npz(x, {.shape = {kItems}, .values = firsts}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_FALSE(evaluation().contains("perplexity"));
  // The class of a position is its token.
  outcome = train_from(token_model(5), npz(x, x), {"--restart", "--set", "optimizer.name=adam"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(evaluation().at("accuracy"), 1.0);
}

TEST_F(TrainFromOnnx, pixels_have_classes) {
  // A pixel's class is 1 where it is bright.
  std::vector<float> images;
  std::vector<std::int64_t> classes;
  for (const std::int64_t bright : counted(kItems * kSide * kSide, 2)) {
    images.push_back(bright != 0 ? 0.8F : 0.05F);
    classes.push_back(bright);
  }
  classes[5] = -100;  // nothing is learnt there
  const std::string model = exported("pixels.onnx", [](std::int64_t batch) {
    Graph g;
    const Tensor x = g.input("image", {batch, 1, kSide, kSide});
    const Tensor w = g.parameter("conv.weight", {3, 1, 1, 1}, init::normal());
    g.output("logits", conv2d(x, w));
    return g;
  });
  const data::Array x{.shape = {kItems, 1, kSide, kSide}, .values = images};
  Outcome outcome = train_from(model, npz(x, {.shape = {kItems, kSide, kSide}, .values = classes}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_GT(evaluation().at("accuracy").get<double>(), 0.95);
  EXPECT_FALSE(evaluation().contains("perplexity"));  // that is of language models
  const Outcome asked = run_pantala(
      {"predict", file("run"), "--data", "npz:" + file("data.npz"), "--csv", "--limit", "1"});
  ASSERT_EQ(asked.exit_code, 0) << asked.err;
  EXPECT_THAT(asked.out, HasSubstr("item,position,class"));
  EXPECT_EQ(std::count(asked.out.begin(), asked.out.end(), '\n'), 1 + kSide * kSide);
  expect_truths(classes);
  const Outcome again = run_pantala({"export", file("run"), "--out", file("again.onnx")});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  const onnx::Summary summary = onnx::summarize(file("again.onnx"));
  ASSERT_EQ(summary.outputs.size(), 1U);
  EXPECT_EQ(summary.outputs[0].str(), "f32[batch,3,4,4]");
  EXPECT_EQ(summary.metadata.at(1).first, "normalization");

  outcome =
      train_from(model, npz(x, {.shape = {kItems, kSide}, .values = counted(kItems * kSide, 2)}),
                 {"--restart"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("this model learns a class for each of the 16 positions of an "
                                     "item: whole numbers [items, 4, 4]"));
  const data::Array y{.shape = {kItems, kSide, kSide}, .values = classes};
  for (const char* moved : {"data.flip=true", "data.rotate=10"}) {
    outcome = train_from(model, npz(x, y), {"--restart", "--set", moved});
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_THAT(outcome.err, HasSubstr("every position of an item has a label"));
    EXPECT_THAT(outcome.err, HasSubstr("data.rotate, data.crop_pad and data.flip would move"));
  }
  // Colours stay where they are.
  outcome = train_from(model, npz(x, y), {"--restart", "--set", "data.jitter_brightness=0.1"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
}

// Logits [batch, height, width, classes] of as many classes as rows: the labels tell which is
// which.
TEST_F(TrainFromOnnx, pixels_have_classes_in_the_last_axis_too) {
  constexpr std::int64_t kRows = 3, kColumns = 5;
  std::vector<float> images;
  std::vector<std::int64_t> classes;
  for (const std::int64_t klass : counted(kItems * kRows * kColumns, kRows)) {
    for (std::int64_t k = 0; k < kRows; ++k) images.push_back(k == klass ? 1.0F : 0.0F);
    classes.push_back(klass);
  }
  const std::string model = exported("last.onnx", [](std::int64_t batch) {
    Graph g;
    const Tensor x = g.input("image", {batch, kRows, kColumns, kRows});
    g.output("logits", matmul(x, g.parameter("weight", {kRows, kRows}, init::normal())));
    return g;
  });
  const data::Array x{.shape = {kItems, kRows, kColumns, kRows}, .values = images};
  const Outcome outcome =
      train_from(model, npz(x, {.shape = {kItems, kRows, kColumns}, .values = classes}),
                 {"--set", "optimizer.name=adam", "--set", "data.normalize=none"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(evaluation().at("accuracy"), 1.0);
  EXPECT_EQ(json::parse(bytes("run/data.json")).at("positions"), (std::vector{kRows, kColumns}));
  const Outcome again = run_pantala({"eval", file("run"), "--json"});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(json::parse(again.out).at("accuracy"), 1.0);
}

// As PyTorch writes a layer with batch_first.
TEST_F(TrainFromOnnx, recurrent_models_learn) {
  constexpr std::int64_t kHidden = 8, kClasses = 3;
  ModelMaker maker("lstm", 17);
  maker.input("x", {0, kLength, kClasses}).symbolic(0, "batch");
  for (const auto& [name, sizes] :
       {std::pair<std::string, Sizes>{"lstm.w", {1, 4 * kHidden, kClasses}},
        {"lstm.r", {1, 4 * kHidden, kHidden}},
        {"lstm.b", {1, 8 * kHidden}},
        {"head.weight", {kClasses, kHidden}},
        {"head.bias", {kClasses}}})
    drawn_weight(maker, name, sizes);
  maker.node("Transpose", {"x"}, {"steps"}).with("perm", Sizes{1, 0, 2});
  maker.node("LSTM", {"steps", "lstm.w", "lstm.r", "lstm.b"}, {"", "h"})
      .with("hidden_size", kHidden);
  maker.integers("axis", {0}).node("Squeeze", {"h", "axis"}, {"last"});
  maker.node("Gemm", {"last", "head.weight", "head.bias"}, {"logits"}).with("transB", 1);
  const std::string model = written("lstm.onnx", maker.made({"logits"}));
  // The class is what the first step says; the steps behind it say nothing of it.
  std::vector<float> x;
  const std::vector<std::int64_t> classes = counted(kItems, kClasses);
  for (const std::int64_t klass : classes)
    for (std::int64_t k = 0; k < kLength * kClasses; ++k)
      x.push_back(k < kClasses ? (k == klass ? 1.0F : 0.0F) : static_cast<float>(k % 5) / 5);
  const std::string data = npz({.shape = {kItems, kLength, kClasses}, .values = x},
                               {.shape = {kItems}, .values = classes});
  const Outcome outcome = train_from(
      model, data, {"--set", "optimizer.name=adam", "--set", "data.normalize=none"}, "30");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Outcome tried = run_pantala({"eval", file("run"), "--data", data, "--json"});
  ASSERT_EQ(tried.exit_code, 0) << tried.err;
  EXPECT_EQ(json::parse(tried.out).at("accuracy"), 1.0);
  const Outcome again = run_pantala({"export", file("run"), "--out", file("again.onnx"), "--json"});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(json::parse(again.out).at("batch"), "any");
  // The same numbers leave both forms of the model.
  const Outcome ran = run_pantala(
      {"run", file("again.onnx"), "--input", "x=" + file("x.npy"), "--output", file("out")});
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const data::Array logits = data::read_npy(file("out/logits.npy"));
  EXPECT_EQ(logits.shape, (Shape{kItems, kClasses}));
  const auto& values = std::get<std::vector<float>>(logits.values);
  for (std::size_t k = 0; k < classes.size(); ++k) {
    const auto row = values.begin() + static_cast<std::ptrdiff_t>(k) * kClasses;
    EXPECT_EQ(std::max_element(row, row + kClasses) - row, classes[k]) << k;
  }
}

// The class is how many pixels are bright: what counts are the largest of them, wherever they are.
TEST_F(TrainFromOnnx, models_that_choose_sample_and_draw_learn) {
  constexpr std::int64_t kPixels = kSide * kSide, kKept = 12;
  ModelMaker maker("sampled", 17);
  maker.input("image", {0, 1, kSide, kSide}).symbolic(0, "batch");
  std::vector<float> grid;  // every pixel, a little to the side
  for (std::int64_t k = 0; k < kPixels; ++k)
    for (const std::int64_t place : {k % kSide, k / kSide})
      grid.push_back(static_cast<float>(2 * place + 1) / kSide - 0.95F);
  maker.weight("grid", {1, kSide, kSide, 2}, grid);
  drawn_weight(drawn_weight(maker, "head.weight", {3, kKept}), "head.bias", {3});
  maker.node("ReduceMean", {"image"}, {"mean"}).with("axes", Sizes{1, 2, 3});
  maker.node("Sub", {"mean", "mean"}, {"nothing"}).node("Add", {"nothing", "grid"}, {"grids"});
  maker.node("GridSample", {"image", "grids"}, {"sampled"}).with("padding_mode", "border");
  maker.node("Flatten", {"sampled"}, {"flat"});
  maker.node("RandomNormalLike", {"flat"}, {"noise"}).with_float("scale", 0.02F);
  maker.node("Add", {"flat", "noise"}, {"noisy"});
  maker.integers("kept", {kKept}).node("TopK", {"noisy", "kept"}, {"best", "where"});
  maker.node("Gemm", {"best", "head.weight", "head.bias"}, {"logits"}).with("transB", 1);
  const std::string model = written("sampled.onnx", maker.made({"logits"}));
  std::vector<float> images;
  const std::vector<std::int64_t> classes = counted(kItems, 3);
  for (std::int64_t item = 0; item < kItems; ++item)
    for (std::int64_t k = 0; k < kPixels; ++k) {
      const bool bright =
          (5 * k + item) % kPixels < 2 + 4 * classes[static_cast<std::size_t>(item)];
      images.push_back(bright ? 1.0F : 0.0F);
    }
  const std::string data = npz({.shape = {kItems, 1, kSide, kSide}, .values = images},
                               {.shape = {kItems}, .values = classes});
  const Outcome outcome = train_from(
      model, data, {"--set", "optimizer.name=adam", "--set", "data.normalize=none"}, "60");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Outcome tried = run_pantala({"eval", file("run"), "--data", data, "--json"});
  ASSERT_EQ(tried.exit_code, 0) << tried.err;
  EXPECT_GT(json::parse(tried.out).at("accuracy").get<double>(), 0.9);
  // A gradient reached the grid through the choice.
  const std::vector<double> learnt =
      Weights::open(file("run/model.safetensors")).read("grid").to_doubles();
  EXPECT_NE(std::vector<float>(learnt.begin(), learnt.end()), grid);
  EXPECT_THAT(run_pantala({"export", file("run"), "--out", file("again.onnx")}).err,
              HasSubstr("RandomNormalLike_noise"));
}

TEST_F(TrainFromOnnx, what_is_not_trained_as_in_pytorch_is_said_before_the_first_step) {
  const std::string model = exported("scaled.onnx", [](std::int64_t batch) {
    Graph g;
    const Tensor x = g.input("x", {batch, 4});
    g.output("logits", matmul(x, g.parameter("fc.weight", {4, 3}, init::normal())) *
                           g.parameter("fc.scale", {}, init::constant(1)));
    return g;
  });
  const Outcome outcome = train_from(model, points());
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("'fc.scale': single numbers are not trained"));
}

TEST_F(TrainFromOnnx, names_of_classes_and_normalisation_go_with_the_exported_file) {
  ASSERT_EQ(run_pantala(train("run")).exit_code, 0);
  const Outcome outcome = run_pantala({"export", file("run"), "--out", file("m.onnx")});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("it takes batches of any size"));
  const Outcome shown = run_pantala({"inspect", file("m.onnx"), "--json"});
  const json metadata = json::parse(shown.out).at("metadata");
  EXPECT_EQ(metadata.at("task"), "classification");
  EXPECT_EQ(json::parse(metadata.at("classes").get<std::string>()).size(), 3U);
  const json normalised = json::parse(metadata.at("normalization").get<std::string>()),
             facts = json::parse(bytes("run/data.json"));
  EXPECT_EQ(normalised.at("mean"), facts.at("mean"));
  EXPECT_EQ(normalised.at("std"), facts.at("std"));
}

}  // namespace
}  // namespace pantala::tests::onnx_training_test
