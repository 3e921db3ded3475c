// Language models from end to end: text and token files, going on with the same bits, evaluation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/training.h"
#include "support/data_files.h"

namespace pantala::tests {
namespace {

using nlohmann::json;
using testing::HasSubstr;

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
}  // namespace pantala::tests
