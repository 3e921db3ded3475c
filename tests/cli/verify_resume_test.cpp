// pantala verify-resume: interruptions change no bit, whatever is trained.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/training.h"

namespace pantala::tests::verify_resume_test {
namespace {

using testing::HasSubstr;

class VerifyResume : public TrainingTest {
 protected:
  Outcome verify(std::vector<std::string> more) const {
    std::vector<std::string> words = train("unused", std::move(more));
    words[0] = "verify-resume";
    return run_pantala(words);
  }
};

TEST_F(VerifyResume, holds_for_a_plain_config) {
  const Outcome outcome = verify({});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "the same bits: 30 updates with 3 interruptions as in one piece\n");
  EXPECT_THAT(outcome.err, HasSubstr("interrupted after batch 1: the same bits\n"));
  EXPECT_FALSE(exists("unused"));
}

TEST_F(VerifyResume, holds_with_everything_that_has_a_state) {
  const Outcome outcome = verify(
      {"--accumulate", "2", "--ema", "0.95", "--clip", "1", "--schedule", "cosine", "--set",
       "schedule.warmup_steps=5", "--set", "early_stopping.patience=2", "--set",
       "early_stopping.metric=accuracy", "--json", "--progress", "none", "--interruptions", "5"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out;
  EXPECT_EQ(outcome.err, "");
  const nlohmann::json json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json.at("same"), true);
  EXPECT_EQ(json.at("steps"), 20);
  EXPECT_EQ(json.at("places").size(), 5U);
}

TEST_F(VerifyResume, holds_for_a_plateau_and_momentum) {
  const Outcome outcome = verify({"--optimizer", "sgd", "--set", "optimizer.momentum=0.9", "--set",
                                  "schedule.name=plateau", "--set", "schedule.patience=0", "--set",
                                  "schedule.metric=accuracy", "--steps", "25"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
}

}  // namespace
}  // namespace pantala::tests::verify_resume_test
