// pantala explain: what was chosen, and why.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/run.h"
#include "support/temporary.h"

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

// Before anything is searched the graph gets its canonical form.
TEST(Explain, lists_what_was_recognised) {
  const TemporaryFolder folder;
  const std::string file = folder.file("gate.txt");
  std::ofstream(file) << R"(graph {
  %0 = input {name="x", dtype=f32, shape=[4]} : f32[4]
  %1 = sigmoid(%0) : f32[4]
  %2 = mul(%0, %1) : f32[4]
  output "y" = %2
})";
  const Outcome outcome = explain({file, "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto rules = nlohmann::json::parse(outcome.out).at("canonical");
  ASSERT_EQ(rules.size(), 1U);
  EXPECT_EQ(rules[0].at("name"), "silu");
  EXPECT_EQ(rules[0].at("reached"), 1);
  EXPECT_THAT(explain({file}).out, HasSubstr("canonical form by"));
  EXPECT_THAT(explain({file, "--rules-off", "silu"}).out, testing::Not(HasSubstr("silu")));
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
