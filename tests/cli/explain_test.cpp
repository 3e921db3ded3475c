// pantala explain: what was chosen, and why.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/run.h"

namespace pantala::tests::explain_test {
namespace {

using testing::HasSubstr;

Outcome explain(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "explain");
  return run_pantala(arguments);
}

TEST(Explain, says_what_was_chosen_and_what_each_rule_is_worth) {
  const Outcome outcome = explain({"lenet", "--batch", "16", "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto step = nlohmann::json::parse(outcome.out).at("steps").at(0);
  EXPECT_EQ(step.at("role"), "step");
  EXPECT_EQ(step.at("stop_reason"), "saturated");
  double given = 0, chosen = 0;
  for (const auto& one : step.at("candidates")) {
    if (one.at("name") == "given") given = one.at("predicted_us");
    if (one.at("chosen")) chosen = one.at("predicted_us");
  }
  EXPECT_LT(chosen, given);
  bool has_pool = false;
  for (const auto& rule : step.at("rules"))
    if (rule.at("name") == "relu-mask-above-pool") {
      has_pool = true;
      EXPECT_GT(rule.at("predicted_us_without"), chosen);
    }
  EXPECT_TRUE(has_pool);
}

TEST(Explain, shows_tables_and_times) {
  const Outcome outcome =
      explain({"lenet", "--batch", "16", "--measure", "--rules-off", "sum-of-pool-gradient"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("estimated ms"));
  EXPECT_THAT(outcome.out, HasSubstr("measured ms"));
  EXPECT_THAT(outcome.out, HasSubstr("relu-mask-above-pool"));
  EXPECT_THAT(outcome.out, testing::Not(HasSubstr("sum-of-pool-gradient")));
  EXPECT_THAT(outcome.out, HasSubstr("e-graph: "));
}

TEST(Explain, refuses_what_it_cannot_explain) {
  const Outcome none = explain({"mlp", "--rewrite", "none"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("nothing is chosen with --rewrite none"));
  const Outcome rule = explain({"mlp", "--rules-off", "choice-of-sam"});
  EXPECT_EQ(rule.exit_code, 2);
  EXPECT_THAT(rule.err, HasSubstr("did you mean 'choice-of-same'?"));
  const Outcome level = explain({"mlp", "--rewrite", "greedyy"});
  EXPECT_EQ(level.exit_code, 2);
  EXPECT_THAT(level.err, HasSubstr("rewrite must be one of none, greedy, egraph"));
}

}  // namespace
}  // namespace pantala::tests::explain_test
