// pantala lr-find: the number, the plot, and the judgement behind them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/training.h"
#include "pantala/error.h"
#include "run/lr_sweep.h"

namespace pantala::tests::lr_find_test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(LrSweep, the_suggestion_is_where_the_loss_falls_fastest) {
  // A step down around 1e-2, then an explosion; with noise.
  std::vector<run::RateSweepPoint> points;
  for (int k = 0; k < 200; ++k) {
    const double decade = -7 + 0.035 * k;
    const double noise = 0.02 * std::sin(37.0 * k);
    const double fall = 1 / (1 + std::exp((decade + 2) * 4));
    points.push_back({std::pow(10, decade), 0.5 + 1.8 * fall + noise});
  }
  const double found = run::steepest(run::smooth(points));
  EXPECT_NEAR(std::log10(found), -2, 0.15);
}

TEST(LrSweep, a_loss_that_never_falls_has_no_suggestion) {
  std::vector<run::RateSweepPoint> points;
  for (int k = 0; k < 50; ++k) points.push_back({std::pow(10, -7 + 0.1 * k), 1 + 0.1 * k});
  EXPECT_THROW(run::steepest(run::smooth(points)), ValueError);
}

using LrFind = TrainingTest;

TEST_F(LrFind, prints_one_number_and_draws_a_plot) {
  const std::vector<std::string> words = {"lr-find",         "--model",      "mlp", "--data",
                                          points(),          "--batch-size", "16",  "--plot",
                                          file("rates.svg"), "--threads",    "1"};
  const Outcome outcome = run_pantala(words);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const double rate = std::stod(outcome.out);
  EXPECT_GT(rate, 1e-5);
  EXPECT_LT(rate, 1);
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 1);
  EXPECT_THAT(outcome.err, HasSubstr("device cpu: "));
  EXPECT_THAT(bytes("rates.svg"), StartsWith("<svg"));
  std::vector<std::string> more = words;
  more.push_back("--json");
  const nlohmann::json json = nlohmann::json::parse(run_pantala(more).out);
  EXPECT_EQ(json.at("lr"), rate);
  EXPECT_GT(json.at("points").size(), 50U);
}

TEST_F(LrFind, a_range_that_is_none_is_a_mistake) {
  const Outcome outcome = run_pantala(
      {"lr-find", "--model", "mlp", "--data", points(), "--first", "1", "--last", "0.1"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.err.substr(outcome.err.find("pantala: ")),
            "pantala: --first must be above 0 and below --last, got 1 and 0.1\n");
}

}  // namespace
}  // namespace pantala::tests::lr_find_test
