// Runs that begin with given weights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "cli/training.h"
#include "pantala/weights.h"

namespace pantala::tests::first_weights_test {
namespace {

using testing::HasSubstr;

class FirstWeights : public TrainingTest {
 protected:
  FirstWeights() {
    const Outcome outcome = run_pantala(train("old"));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  }
  std::string old_model() const { return file("old/model.safetensors"); }
  std::string last_layer() const {
    const std::string name = Weights::open(old_model()).names().back();
    return name.substr(0, name.find_last_of('.'));
  }
  // A run that changes nothing, so that it ends with the weights that it began with.
  std::vector<std::string> still(const std::string& out, const std::vector<std::string>& more,
                                 const std::string& data = "") const {
    std::vector<std::string> words = train(out, more);
    *std::find(words.begin(), words.end(), "0.01") = "1e-30";
    if (!data.empty()) *std::find(words.begin(), words.end(), points()) = "csv:" + file(data);
    return words;
  }
  std::string complaint(const std::vector<std::string>& more, const std::string& data = "") const {
    const Outcome outcome = run_pantala(still("refused", more, data));
    EXPECT_EQ(outcome.exit_code, 2) << outcome.out;
    EXPECT_FALSE(exists("refused/config.toml"));
    return outcome.err;
  }
  Literal weight(const std::string& run, const std::string& name) const {
    return Weights::open(file(run + "/model.safetensors")).read(name);
  }
};

TEST_F(FirstWeights, a_run_begins_with_the_weights_of_a_file) {
  const Outcome outcome = run_pantala(still("run", {"--weights", old_model(), "--seed", "5"}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const std::string& name : Weights::open(old_model()).names())
    EXPECT_EQ(weight("run", name), weight("old", name)) << name;
  // A run that is there needs the file no more.
  std::filesystem::remove(old_model());
  EXPECT_EQ(run_pantala({"eval", file("run"), "--data", points()}).exit_code, 0);
}

TEST_F(FirstWeights, averages_begin_there_too) {
  const Outcome outcome = run_pantala(still("run", {"--weights", old_model(), "--ema", "0.9"}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Literal average = weight("run", "fc1.weight"), first = weight("old", "fc1.weight");
  for (std::int64_t k = 0; k < first.numel(); ++k)
    EXPECT_NEAR(average.at(k), first.at(k), 1e-5 * std::abs(first.at(k)));
}

TEST_F(FirstWeights, what_does_not_fit_is_listed_unless_it_begins_anew) {
  write_points(file("more.csv"), 60);
  std::ofstream(file("more.csv"), std::ios::app) << "1,2,3,4.5,flat\n";  // a fourth class
  const std::string message = complaint({"--weights", old_model()}, "more.csv");
  EXPECT_THAT(message, HasSubstr("old/model.safetensors"));
  EXPECT_THAT(message, HasSubstr("[4,12] in the model, f32[3,12] given"));
  EXPECT_THAT(message, HasSubstr("[4] in the model, f32[3] given"));
  EXPECT_THAT(message, HasSubstr("--fresh '" + last_layer() +
                                 ".*' begins what is of another type with random values\n"));
  const std::vector<std::string> names = Weights::open(old_model()).names();
  const Outcome outcome = run_pantala(
      still("run", {"--weights", old_model(), "--fresh", last_layer() + ".*"}, "more.csv"));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(weight("run", names.front()), weight("old", names.front()));
}

TEST_F(FirstWeights, keys_that_mean_nothing_are_refused) {
  EXPECT_THAT(complaint({"--fresh", "fc.*"}),
              HasSubstr("model.fresh is given, but no model.weights (--weights) that it is of"));
  EXPECT_THAT(complaint({"--set", "model.unused=x"}), HasSubstr("model.unused is given"));
  EXPECT_THAT(complaint({"--weights", old_model(), "--from", "x.onnx"}),
              HasSubstr("model.weights and model.from are both given"));
}

TEST_F(FirstWeights, a_file_that_lacks_is_said_before_anything_is_written) {
  const Outcome outcome = run_pantala(train("refused", {"--weights", file("nothing.safetensors")}));
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("nothing.safetensors"));
  EXPECT_FALSE(exists("refused/config.toml"));
}

}  // namespace
}  // namespace pantala::tests::first_weights_test
