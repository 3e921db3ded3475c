// Runs that begin with given weights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/training.h"
#include "pantala/weights.h"

namespace pantala::tests {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class FirstWeights : public TrainingTest {
 protected:
  FirstWeights() {
    const Outcome outcome = run_pantala(train("old"));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  }
  std::string old_model() const { return file("old/model.safetensors"); }
  std::string complaint(std::vector<std::string> more) const {
    const Outcome outcome = run_pantala(train("refused", std::move(more)));
    EXPECT_EQ(outcome.exit_code, 2) << outcome.out;
    EXPECT_FALSE(exists("refused"));
    return outcome.err;
  }
  Literal weight(const std::string& run, const std::string& name) const {
    return Weights::open(file(run + "/model.safetensors")).read(name);
  }
};

// With a rate that changes nothing, the weights at the end are those of the beginning.
TEST_F(FirstWeights, ARunBeginsWithTheWeightsOfAFile) {
  const std::vector<std::string> still = {"--weights", old_model(), "--lr",  "1e-30",
                                          "--seed",    "5",         "--ema", "0.9"};
  const Outcome outcome = run_pantala(train("run", still));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const std::string& name : Weights::open(old_model()).names())
    EXPECT_EQ(weight("run", name), weight("old", name)) << name;
  // A run that is there needs the file no more.
  std::filesystem::remove(old_model());
  EXPECT_EQ(run_pantala({"eval", file("run"), "--data", points()}).exit_code, 0);
}

TEST_F(FirstWeights, WhatDoesNotFitIsListedUnlessItBeginsAnew) {
  std::vector<std::string> other = {"--weights", old_model(), "--lr", "1e-30"};
  write_points(file("more.csv"), 60);
  std::ofstream(file("more.csv"), std::ios::app) << "1,2,3,4.5,flat\n";  // a fourth class
  other.insert(other.end(), {"--data", "csv:" + file("more.csv")});
  const std::string message = complaint(other);
  EXPECT_THAT(message, HasSubstr("old/model.safetensors"));
  EXPECT_THAT(message, HasSubstr("[4,12] in the model, f32[3,12] given"));
  EXPECT_THAT(message, HasSubstr("[4] in the model, f32[3] given"));
  const std::vector<std::string> names = Weights::open(old_model()).names();
  const std::string last = names.back().substr(0, names.back().find_last_of('.'));
  other.insert(other.end(), {"--fresh", last + ".*"});
  const Outcome outcome = run_pantala(train("run", other));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(weight("run", names.front()), weight("old", names.front()));
}

TEST_F(FirstWeights, KeysThatMeanNothingAreRefused) {
  EXPECT_THAT(complaint({"--fresh", "fc.*"}),
              HasSubstr("model.fresh is given, but no model.weights (--weights) that it is of"));
  EXPECT_THAT(complaint({"--set", "model.unused=x"}), HasSubstr("model.unused is given"));
  EXPECT_THAT(complaint({"--weights", old_model(), "--from", "x.onnx"}),
              HasSubstr("model.weights and model.from are both given"));
}

TEST_F(FirstWeights, AFileThatLacksIsSaidBeforeAnythingIsWritten) {
  const Outcome outcome = run_pantala(train("refused", {"--weights", file("nothing.safetensors")}));
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("nothing.safetensors"));
  EXPECT_FALSE(exists("refused/config.toml"));
}

}  // namespace
}  // namespace pantala::tests
