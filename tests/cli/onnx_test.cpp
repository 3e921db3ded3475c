// pantala export, run and train --from: a model goes out as an ONNX file and comes back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/training.h"
#include "pantala/data.h"

namespace pantala::tests::onnx_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class OnnxCommands : public TrainingTest {
 protected:
  OnnxCommands() { EXPECT_EQ(run_pantala(train("run")).exit_code, 0); }
  std::string exported(const std::string& batch = "3") const {
    const Outcome outcome =
        run_pantala({"export", file("run"), "--out", file("model.onnx"), "--batch", batch});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("read again, it computes the same"));
    return file("model.onnx");
  }
  std::string items(int count) const {
    std::vector<float> values;
    for (int k = 0; k < 4 * count; ++k) values.push_back(static_cast<float>(k % 7) - 3);
    data::write_npy(file("x.npy"), {Shape{count, 4}, values});
    return file("x.npy");
  }
};

TEST_F(OnnxCommands, run_writes_an_array_per_output) {
  const std::string model = exported();
  const Outcome outcome =
      run_pantala({"run", model, "--input", "x=" + items(3), "--output", file("out"), "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json told = json::parse(outcome.out);
  EXPECT_EQ(told.at("outputs").size(), 1U);
  EXPECT_EQ(told.at("outputs")[0].at("name"), "logits");
  EXPECT_EQ(told.at("outputs")[0].at("shape"), (std::vector<int>{3, 3}));
  const data::Array logits = data::read_npy(file("out/logits.npy"));
  EXPECT_EQ(logits.shape, (Shape{3, 3}));
}

TEST_F(OnnxCommands, run_keeps_the_plan_for_the_next_time) {
  forget_plans();
  const std::string model = exported();
  const auto run = [&](const std::string& folder) {
    const Outcome outcome =
        run_pantala({"run", model, "--input", "x=" + items(3), "--output", file(folder), "--json"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return json::parse(outcome.out).at("cached").get<bool>();
  };
  EXPECT_FALSE(run("first"));
  EXPECT_TRUE(run("second"));
  EXPECT_EQ(bytes("first/logits.npy"), bytes("second/logits.npy"));
}

TEST_F(OnnxCommands, run_names_what_is_missing_unknown_or_of_another_shape) {
  const std::string model = exported();
  const auto error = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {"run", model, "--output", file("out")};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = run_pantala(words);
    EXPECT_EQ(outcome.exit_code, 2);
    return outcome.err;
  };
  EXPECT_EQ(error({}), "pantala: " + model + ": missing: --input x=FILE.npy (f32[3,4])\n");
  EXPECT_EQ(error({"--input", "x"}), "pantala: --input must be NAME=FILE.npy, got \"x\"\n");
  EXPECT_EQ(error({"--input", "y=" + items(3)}),
            "pantala: " + model + ": it has no input 'y'; did you mean 'x'?\n");
  EXPECT_EQ(error({"--input", "x=" + items(2)}),
            "pantala: " + model + ": input 'x' has the shape [3,4], not [2,4]\n");
  EXPECT_EQ(error({"--input", "x=" + items(3), "--size", "n=many"}),
            "pantala: --size n: a size is a whole number from 0, got \"many\"\n");
  EXPECT_THAT(error({"--input", "x=" + file("absent.npy")}), HasSubstr("absent.npy"));
}

TEST_F(OnnxCommands, a_model_is_trained_further_from_its_file_and_exported_again) {
  const std::string model = exported("1");
  const Outcome trained = run_pantala(
      {"train", "--from", model, "--loss", "cross_entropy", "--labels", "kind", "--data", points(),
       "--out", file("further"), "--epochs", "2", "--batch-size", "16", "--threads", "1"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_EQ(json::parse(bytes("further/result.json")).at("model"), "model");
  const auto accuracy = [&](const std::string& run) {
    return json::parse(run_pantala({"eval", file(run), "--data", points(), "--json"}).out)
        .at("accuracy")
        .get<double>();
  };
  EXPECT_GE(accuracy("further"), accuracy("run") - 0.05);
  const Outcome again =
      run_pantala({"export", file("further"), "--out", file("again.onnx"), "--json"});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(json::parse(again.out).at("opset"), 17);
}

TEST_F(OnnxCommands, mistakes_of_export_and_train_from_are_named) {
  Outcome outcome = run_pantala({"export", "lenett", "--out", file("model.onnx")});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(
      outcome.err,
      HasSubstr("'lenett' is neither the folder of a run nor a model; did you mean 'lenet'?"));
  outcome = run_pantala({"export", "lenet", "--out", file("model.onnx")});
  EXPECT_EQ(outcome.err, "pantala: model lenet needs --weights FILE.safetensors\n");
  outcome = run_pantala(
      {"train", "--from", file("absent.onnx"), "--data", points(), "--out", file("further")});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("absent.onnx"));
  outcome = run_pantala({"train", "--from", exported(), "--loss", "mse", "--data", points(),
                         "--out", file("further")});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("model.loss is mse, but the labels of"));
}

}  // namespace
}  // namespace pantala::tests::onnx_test
