// Language models from end to end: text and token files, going on with the same bits, evaluation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/training.h"
#include "pantala/weights.h"
#include "support/data_files.h"

namespace pantala::tests::tokens_test {
namespace {

using nlohmann::json;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

class Tokens : public TrainingTest {
 protected:
  Tokens() {
    std::string text, tokens;
    for (int k = 0; k < 60; ++k) text += "the sun is up. ";
    for (int k = 0; k < 400; ++k) tokens += little(static_cast<std::uint64_t>(k % 7 * 5), 2);
    put_file(file("sun.txt"), text);
    put_file(file("tokens.bin"), tokens);
  }
  std::vector<std::string> learn(const std::string& out, const std::string& source,
                                 std::vector<std::string> more = {}) const {
    std::vector<std::string> words = {"train",
                                      "--model",
                                      "llama-bytes",
                                      "--data",
                                      source,
                                      "--out",
                                      file(out),
                                      "--lr",
                                      "0.01",
                                      "--epochs",
                                      "2",
                                      "--set",
                                      "data.sequence=8",
                                      "--set",
                                      "data.stride=4",
                                      "--batch-size",
                                      "16",
                                      "--threads",
                                      "1",
                                      "--progress",
                                      "none"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  // A model that compiles quickly, with batches of one size.
  static std::vector<std::string> small(const std::vector<std::string>& more = {}) {
    std::vector<std::string> words;
    for (const char* set : {"model.width=16", "model.layers=1", "model.heads=2",
                            "data.drop_last=true", "data.validation=0.08"})
      words.insert(words.end(), {"--set", set});
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
};

TEST_F(Tokens, text_is_learnt_and_evaluated) {
  const Outcome trained = run_pantala(learn("run", "text:" + file("sun.txt"), {"--json"}));
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const json evaluation = json::parse(trained.out).at("evaluation");
  // The last tenth of 900 bytes: 90, in windows of 8 and the next byte.
  EXPECT_EQ(evaluation.at("items"), 21);
  EXPECT_LT(evaluation.at("loss"), std::log(256.0));
  EXPECT_NEAR(evaluation.at("perplexity").get<double>(),
              std::exp(evaluation.at("loss").get<double>()), 1e-9);
  EXPECT_GT(evaluation.at("accuracy"), 0.3);
  const Outcome again = run_pantala({"eval", file("run"), "--json"});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(json::parse(again.out).at("loss"), evaluation.at("loss"));
  const Outcome whole = run_pantala({"eval", file("run"), "--data", "text:" + file("sun.txt")});
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  EXPECT_THAT(whole.out, HasSubstr("perplexity "));
  EXPECT_THAT(run_pantala({"predict", file("run"), "--data", "text:" + file("sun.txt")}).err,
              HasSubstr("tokens are no such items"));
}

// Precision and recall of 256 bytes say nothing.
TEST_F(Tokens, a_language_model_is_measured_in_bits_and_perplexity) {
  const Outcome text = run_pantala(learn("text", "text:" + file("sun.txt"), small()));
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, ContainsRegex("^bits per byte [0-9.]+, accuracy [0-9.]+ %, perplexity "
                                      "[0-9.]+, loss [0-9.]+ over 16 items\n"));
  EXPECT_THAT(text.out, Not(HasSubstr("precision")));
  const json of_text = json::parse(bytes("text/result.json")).at("evaluation");
  EXPECT_NEAR(of_text.at("bits_per_byte").get<double>(),
              of_text.at("loss").get<double>() / std::log(2.0), 1e-9);
  EXPECT_FALSE(of_text.contains("precision"));
  EXPECT_FALSE(of_text.contains("confusion"));
  EXPECT_THAT(bytes("text/metrics.csv"), HasSubstr("validation_bits_per_byte"));
  EXPECT_TRUE(exists("text/plots/perplexity.svg"));
  const Outcome tokens =
      run_pantala(learn("tokens", "tokens:" + file("tokens.bin"), small({"--json"})));
  ASSERT_EQ(tokens.exit_code, 0) << tokens.err;
  const json of_tokens = json::parse(tokens.out).at("evaluation");
  EXPECT_TRUE(of_tokens.contains("bits_per_token"));
  EXPECT_FALSE(of_tokens.contains("bits_per_byte"));
}

TEST_F(Tokens, perplexity_stops_early_and_says_which_checkpoint_is_the_best) {
  const std::string source = "text:" + file("sun.txt");
  // At such a rate it gets worse from the first epoch on.
  const std::vector<std::string> more = small(
      {"--set", "early_stopping.metric=perplexity", "--set", "early_stopping.patience=1", "--set",
       "checkpoint.metric=bits_per_byte", "--set", "early_stopping.min_delta=1000", "--json"});
  std::vector<std::string> words = learn("run", source, more);
  *std::find(words.begin(), words.end(), "2") = "9";  // epochs
  const Outcome outcome = run_pantala(words);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(json::parse(outcome.out).at("end"), "stopped_early");
  EXPECT_EQ(run_pantala({"eval", file("run"), "--checkpoint", "best"}).exit_code, 0);
  const auto complaint = [&](const std::string& metric) {
    return run_pantala(learn("x", source, {"--set", "checkpoint.metric=" + metric})).err;
  };
  EXPECT_EQ(complaint("f1"),
            "pantala: checkpoint.metric is \"f1\", which is of classes, but the "
            "labels of " +
                source + " are bytes; take loss, accuracy, perplexity or bits_per_byte\n");
  EXPECT_THAT(complaint("bits_per_token"), HasSubstr("which is of tokens"));
}

TEST_F(Tokens, the_sizes_of_a_model_are_its_configs) {
  const std::string source = "text:" + file("sun.txt");
  ASSERT_EQ(run_pantala(learn("run", source, small())).exit_code, 0);
  EXPECT_THAT(bytes("run/config.toml"), HasSubstr("\nwidth = 16\nlayers = 1\nheads = 2\n"));
  const Weights weights = Weights::open(file("run/model.safetensors"));
  EXPECT_EQ(weights.type("model.layers.0.mlp.gate_proj.weight").shape, (Shape{48, 16}));
  EXPECT_FALSE(weights.contains("model.layers.1.mlp.gate_proj.weight"));
  // Whoever opens the run makes the same model.
  EXPECT_EQ(run_pantala({"eval", file("run")}).exit_code, 0);
  const Outcome written =
      run_pantala({"generate", file("run"), "--prompt", "the ", "--tokens", "5"});
  EXPECT_EQ(written.exit_code, 0) << written.err;
  EXPECT_EQ(written.out.substr(0, 4), "the ");
  const Outcome exported = run_pantala({"export", file("run"), "--out", file("run.onnx")});
  EXPECT_EQ(exported.exit_code, 0) << exported.err;
  const Outcome other = run_pantala(learn("run", source, small({"--set", "model.kv_heads=1"})));
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, HasSubstr("model.kv_heads: 0 there, 1 here"));
}

// The model at the end of a run has the averages, and so has what the run writes.
TEST_F(Tokens, a_run_with_averages_writes_with_them) {
  ASSERT_EQ(run_pantala(learn("run", "text:" + file("sun.txt"), {"--ema", "0.9"})).exit_code, 0);
  const std::vector<std::string> ask = {"--prompt", "the ", "--tokens", "20", "--threads", "1"};
  std::vector<std::string> of_run = {"generate", file("run")},
                           of_file = {"generate", "--weights", file("run/model.safetensors"),
                                      "--model", "llama-bytes"};
  of_run.insert(of_run.end(), ask.begin(), ask.end());
  of_file.insert(of_file.end(), ask.begin(), ask.end());
  const Outcome run = run_pantala(of_run), weights = run_pantala(of_file);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  ASSERT_EQ(weights.exit_code, 0) << weights.err;
  EXPECT_EQ(run.out, weights.out);
}

TEST_F(Tokens, go_on_with_the_same_bits) {
  const std::string source = "tokens:" + file("tokens.bin");
  ASSERT_EQ(run_pantala(learn("whole", source, {"--max-steps", "6"})).exit_code, 0);
  ASSERT_EQ(run_pantala(learn("parts", source, {"--max-steps", "3"})).exit_code, 0);
  const Outcome rest =
      run_pantala(learn("parts", source, {"--max-steps", "6", "--set", "data.threads=2"}));
  ASSERT_EQ(rest.exit_code, 0) << rest.err;
  EXPECT_EQ(bytes("whole/model.safetensors"), bytes("parts/model.safetensors"));
}

TEST_F(Tokens, mistakes_are_named) {
  const auto complaint = [&](const std::vector<std::string>& words) {
    const Outcome outcome = run_pantala(words);
    EXPECT_EQ(outcome.exit_code, 2);
    return outcome.err;
  };
  const std::string source = "tokens:" + file("tokens.bin");
  EXPECT_EQ(
      complaint(learn("x", source, {"--set", "data.vocabulary=30"})),
      "pantala: " + file("tokens.bin") + ": token 6 is 30, outside of the vocabulary of 30\n");
  EXPECT_EQ(complaint(learn("x", source, {"--set", "data.validation=test"})),
            "pantala: " + source +
                " has no test set; data.validation can be a share of its tokens such as 0.1, or "
                "none\n");
  EXPECT_EQ(complaint(learn("x", points())),
            "pantala: model llama-bytes learns from tokens (tokens:FILE or text:FILE), which " +
                points() + " are not\n");
}

}  // namespace
}  // namespace pantala::tests::tokens_test
