// pantala predict: a class and its probability per item.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/training.h"
#include "pantala/data.h"

namespace pantala::tests {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

class Predict : public TrainingTest {
 protected:
  Predict() { EXPECT_EQ(run_pantala(train("run")).exit_code, 0); }
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST_F(Predict, JsonIsAnObjectPerItemAndAgreesWithTheEvaluation) {
  const Outcome outcome = run_pantala({"predict", file("run"), "--data", points(), "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::vector<std::string> lines = lines_of(outcome.out);
  ASSERT_EQ(lines.size(), 150U);
  const std::vector<std::string> items = lines_of(bytes("points.csv"));
  int right = 0;
  for (std::size_t k = 0; k < lines.size(); ++k) {
    const json prediction = json::parse(lines[k]);
    EXPECT_EQ(prediction.at("item"), k);
    EXPECT_GT(prediction.at("probability"), 1.0 / 3);
    EXPECT_LE(prediction.at("probability"), 1);
    const std::string item = items[k + 1];
    right += item.substr(item.rfind(',') + 1) == prediction.at("name").get<std::string>();
  }
  const json evaluation =
      json::parse(run_pantala({"eval", file("run"), "--data", points(), "--json"}).out);
  EXPECT_EQ(right / 150.0, evaluation.at("accuracy"));
}

TEST_F(Predict, ItemsAloneComeFromAnNpyFile) {
  const data::Dataset set = data::read_csv(file("points.csv"));
  data::write_npy(file("items.npy"), *data::slice(set, 0, 7).data);
  const Outcome npy = run_pantala({"predict", file("run"), "--data", file("items.npy"), "--csv"});
  ASSERT_EQ(npy.exit_code, 0) << npy.err;
  const Outcome csv =
      run_pantala({"predict", file("run"), "--data", points(), "--csv", "--limit", "7"});
  EXPECT_EQ(npy.out, csv.out);
  EXPECT_THAT(npy.out, StartsWith("item,class,name,probability\n0,"));
  EXPECT_EQ(lines_of(npy.out).size(), 8U);
  const Outcome filed = run_pantala(
      {"predict", file("run"), "--data", file("items.npy"), "--csv", "--out", file("classes.csv")});
  EXPECT_EQ(filed.out, "");
  EXPECT_EQ(bytes("classes.csv"), csv.out);
}

TEST_F(Predict, MistakesAreNamed) {
  EXPECT_EQ(run_pantala({"predict", file("run")}).err, "pantala: --data is required\n");
  EXPECT_EQ(run_pantala({"predict", file("run"), "--data", points(), "--csv", "--json"}).exit_code,
            2);
  const Outcome limit = run_pantala({"predict", file("run"), "--data", points(), "--limit", "-1"});
  EXPECT_EQ(limit.exit_code, 2);
  EXPECT_THAT(limit.err, HasSubstr("--limit"));
}

}  // namespace
}  // namespace pantala::tests
