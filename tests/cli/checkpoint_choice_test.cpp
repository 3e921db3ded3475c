// Which weights the verbs use: those that a run has reported, unless --checkpoint says otherwise.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/training.h"
#include "support/data_files.h"

namespace pantala::tests::checkpoint_choice_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

// No epoch is better than the first by so much: it is the best, and the third is the last.
const std::vector<std::string> kStopsEarly = {"--set", "early_stopping.patience=1", "--set",
                                              "early_stopping.min_delta=1000"};

class CheckpointChoice : public TrainingTest {
 protected:
  static std::string output(const std::vector<std::string>& words) {
    const Outcome outcome = run_pantala(words);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return outcome.out;
  }
  // What the verb prints for the weights that are reported, the best and the last ones.
  struct Choices {
    std::string reported, best, last;
  };
  static Choices choices(const std::vector<std::string>& words) {
    const auto with = [&](const std::string& checkpoint) {
      std::vector<std::string> more = words;
      more.insert(more.end(), {"--checkpoint", checkpoint});
      return output(more);
    };
    return {output(words), with("best"), with("last")};
  }
};

TEST_F(CheckpointChoice, after_early_stopping_is_that_of_the_best_epoch_in_every_verb) {
  const Outcome trained = run_pantala(train("run", kStopsEarly));
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_THAT(trained.out, HasSubstr("stopped early; the best epoch was 1 of 3 (validation loss "));
  EXPECT_THAT(trained.out, HasSubstr("); the model has its weights\n"));
  const json result = json::parse(bytes("run/result.json"));

  const Choices eval = choices({"eval", file("run"), "--json"});
  const json reported = json::parse(eval.reported), last = json::parse(eval.last);
  for (const char* key : {"items", "loss", "accuracy", "precision", "recall", "f1", "confusion"})
    EXPECT_EQ(reported.at(key), result.at("evaluation").at(key)) << key;
  EXPECT_EQ(reported.at("best_epoch"), 1);
  EXPECT_EQ(eval.best, eval.reported);
  EXPECT_NE(last.at("loss"), reported.at("loss"));
  EXPECT_FALSE(last.contains("best_epoch"));
  EXPECT_THAT(output({"eval", file("run")}),
              HasSubstr("step-000000027 (the weights of epoch 1) on points.csv\n"));
  // The checkpoint of that epoch is there, too.
  const json named =
      json::parse(output({"eval", file("run"), "--json", "--checkpoint", "step-000000009"}));
  EXPECT_EQ(named.at("loss"), reported.at("loss"));

  const Choices predict = choices({"predict", file("run"), "--data", points(), "--csv"});
  EXPECT_EQ(predict.reported, predict.best);
  EXPECT_NE(predict.reported, predict.last);

  const auto exported = [&](const std::string& checkpoint) {
    output({"export", file("run"), "--out", file("model.onnx"), "--checkpoint", checkpoint});
    return bytes("model.onnx");
  };
  EXPECT_THAT(output({"export", file("run"), "--out", file("model.onnx")}),
              HasSubstr("step-000000027 (the weights of epoch 1); read again"));
  const std::string as_reported = bytes("model.onnx");
  EXPECT_TRUE(as_reported == exported("best"));
  EXPECT_FALSE(as_reported == exported("last"));
}

TEST_F(CheckpointChoice, of_generate_is_that_of_the_others) {
  std::string text;
  for (int k = 0; k < 30; ++k) text += "the sun is up. ";
  put_file(file("sun.txt"), text);
  std::vector<std::string> words = {"train",
                                    "--model",
                                    "llama-bytes",
                                    "--data",
                                    "text:" + file("sun.txt"),
                                    "--out",
                                    file("run"),
                                    "--lr",
                                    "0.01",
                                    "--epochs",
                                    "4",
                                    "--set",
                                    "data.sequence=8",
                                    "--batch-size",
                                    "16",
                                    "--threads",
                                    "1"};
  words.insert(words.end(), kStopsEarly.begin(), kStopsEarly.end());
  output(words);
  const Choices written = choices({"generate", file("run"), "--prompt", "the s", "--tokens", "20",
                                   "--temperature", "1", "--seed", "3", "--json"});
  EXPECT_EQ(written.reported, written.best);
  EXPECT_NE(written.reported, written.last);
}

TEST_F(CheckpointChoice, without_restored_weights_is_the_last_one_and_the_best_epoch_is_told) {
  // Nothing is learnt: all epochs are equal, and of equal ones the first is the best.
  std::vector<std::string> words = train("run");
  *std::find(words.begin(), words.end(), "0.01") = "0";
  const std::string told = output(words);
  EXPECT_THAT(told, HasSubstr("the best epoch was 1 of 4 (validation loss "));
  EXPECT_THAT(told, HasSubstr("); the model has the weights of the last one, those of the best are "
                              "in step-000000009 (--checkpoint best)\n"));
  const auto checkpoint = [&](const std::vector<std::string>& more) {
    std::vector<std::string> eval = {"eval", file("run"), "--json"};
    eval.insert(eval.end(), more.begin(), more.end());
    return json::parse(output(eval)).at("checkpoint").get<std::string>();
  };
  EXPECT_EQ(checkpoint({}), "step-000000036");
  EXPECT_EQ(checkpoint({"--checkpoint", "last"}), "step-000000036");
  EXPECT_EQ(checkpoint({"--checkpoint", "best"}), "step-000000009");

  EXPECT_THAT(output(train("learns", {"--set", "early_stopping.patience=1", "--set",
                                      "early_stopping.min_delta=1000", "--set",
                                      "early_stopping.restore_best=false"})),
              HasSubstr("stopped early"));
  const json learns = json::parse(bytes("learns/result.json"));
  EXPECT_EQ(json::parse(output({"eval", file("learns"), "--json"})).at("loss"),
            learns.at("evaluation").at("loss"));
}

// What the run has called its best at the end is kept, and is what --checkpoint best loads.
TEST_F(CheckpointChoice, best_is_the_checkpoint_that_the_end_of_the_run_names) {
  const auto expect_promise_kept = [&](const std::string& run) {
    const json result = json::parse(bytes(run + "/result.json"));
    EXPECT_EQ(result.at("weights"), "last");
    const json best = json::parse(output({"eval", file(run), "--json", "--checkpoint", "best"}));
    EXPECT_EQ(best.at("checkpoint"), result.at("best_checkpoint"));
    EXPECT_EQ(best.at(result.at("best_metric").get<std::string>()), result.at("best_value"));
    EXPECT_FALSE(best.contains("best_epoch"));
    return result;
  };
  // The accuracy of few items is the best early; the loss falls to the end.
  std::vector<std::string> words =
      train("two", {"--set", "early_stopping.patience=100", "--set",
                    "early_stopping.metric=accuracy", "--set", "early_stopping.restore_best=false",
                    "--set", "checkpoint.metric=loss", "--set", "checkpoint.keep=1"});
  *std::find(words.begin(), words.end(), "4") = "12";
  output(words);
  const json two = expect_promise_kept("two");
  EXPECT_EQ(two.at("best_metric"), "accuracy");
  EXPECT_LT(two.at("best_epoch"), 12);

  // Within the first epoch, and within the second one, which is better than the first.
  output(train("first", {"--max-steps", "5"}));
  EXPECT_EQ(expect_promise_kept("first").at("best_checkpoint"), "step-000000005");
  output(train("second", {"--max-steps", "14"}));
  EXPECT_EQ(expect_promise_kept("second").at("best_checkpoint"), "step-000000014");
  output(train("stopping", {"--max-steps", "14", "--set", "early_stopping.patience=3"}));
  EXPECT_EQ(expect_promise_kept("stopping").at("best_checkpoint"), "step-000000014");

  // Once the run has gone on, the place within an epoch is none of its best ones.
  output(train("first", {"--set", "checkpoint.keep=100"}));
  expect_promise_kept("first");
}

// A result is of the run that has ended: one that goes on has none.
TEST_F(CheckpointChoice, of_a_run_that_goes_on_is_the_newest_one) {
  output(train("run", {"--max-steps", "5"}));
  const json early = json::parse(output({"eval", file("run"), "--json"}));
  EXPECT_EQ(early.at("checkpoint"), "step-000000005");
  EXPECT_EQ(early.at("loss"), json::parse(bytes("run/result.json")).at("evaluation").at("loss"));
}

// As a kill leaves it between the two renames of a checkpoint that replaces one of the same step.
TEST_F(CheckpointChoice, a_checkpoint_that_was_being_replaced_has_its_name_still) {
  output(train("run"));
  for (const char* name : {"step-000000018", "step-000000036"})
    std::filesystem::rename(file(std::string("run/checkpoints/") + name),
                            file(std::string("run/checkpoints/.old-") + name));
  const auto checkpoint = [&](const std::string& name) {
    return json::parse(output({"eval", file("run"), "--json", "--checkpoint", name}))
        .at("checkpoint");
  };
  EXPECT_EQ(checkpoint("step-000000018"), "step-000000018");
  EXPECT_EQ(checkpoint("last"), "step-000000036");
  EXPECT_THAT(run_pantala({"eval", file("run"), "--checkpoint", "none"}).err,
              HasSubstr("there are last, best, step-000000018, step-000000027, step-000000036, "));
}

}  // namespace
}  // namespace pantala::tests::checkpoint_choice_test
