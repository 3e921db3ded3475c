// pantala explain: what was chosen, and why.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/run.h"
#include "cli/training.h"
#include "io/file.h"
#include "support/compiled.h"
#include "support/temporary.h"

namespace pantala::tests::explain_test {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;

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

// What was given is what stands in the file, not its canonical form.
TEST(Explain, begins_with_an_onnx_file_as_it_was_written) {
  const TemporaryFolder folder;
  const std::string file = PANTALA_FIXTURES_DIR "/onnx_training/norms_newer_train.onnx";
  const Outcome outcome = explain({file, "--size", "batch=4", "--measure", "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json document = Json::parse(outcome.out), step = document.at("steps").at(0);
  const Json& candidates = step.at("candidates");
  EXPECT_EQ(candidates.at(0).at("name"), "given");
  EXPECT_EQ(candidates.at(1).at("name"), "canonical");
  EXPECT_GT(candidates[0].at("nodes"), candidates[1].at("nodes"));
  for (const Json& kernel : step.at("given")) {
    EXPECT_TRUE(kernel.at("rules").empty()) << kernel.at("rules");
    EXPECT_GT(kernel.at("measured_us"), 0) << kernel.at("name");
  }
  EXPECT_GT(document.at("given_ms"), 0);
  const Outcome page = explain({file, "--size", "batch=4", "--html", folder.file("page.html")});
  ASSERT_EQ(page.exit_code, 0) << page.err;
  EXPECT_THAT(io::read_file(folder.file("page.html")), HasSubstr("norms_newer_train.onnx"));
}

TEST(Explain, shows_tables_and_times) {
  const Outcome outcome =
      explain({"lenet", "--batch", "16", "--measure", "--rules-off", "sum-of-pool-gradient"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("estimated ms"));
  EXPECT_THAT(outcome.out, HasSubstr("measured ms"));
  EXPECT_THAT(outcome.out, HasSubstr("relu-mask-above-pool"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("sum-of-pool-gradient")));
  EXPECT_THAT(outcome.out, HasSubstr("e-graph: "));
  EXPECT_THAT(outcome.out, HasSubstr("codegen"));
  EXPECT_THAT(outcome.out, HasSubstr("apply rules"));
}

TEST(Explain, has_the_times_of_kernels) {
  const Outcome outcome = explain({"mlp", "--batch", "16", "--measure", "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json document = Json::parse(outcome.out);
  EXPECT_GT(document.at("given_ms"), 0);
  for (const char* which : {"given", "chosen"})
    for (const Json& kernel : document.at("steps").at(0).at(which))
      EXPECT_GT(kernel.at("measured_us"), 0) << kernel.at("name");
}

TEST(Explain, shows_the_chain_of_rewrites_of_a_kernel) {
  const Outcome all = explain({"lenet", "--batch", "16", "--json"});
  ASSERT_EQ(all.exit_code, 0) << all.err;
  const Json kernels = Json::parse(all.out).at("steps").at(0).at("chosen");
  std::size_t number = 0;
  while (number < kernels.size() && kernels[number].at("rules").empty()) ++number;
  ASSERT_LT(number, kernels.size());
  const std::string rule = kernels[number].at("rules").at(0);
  for (const std::string& name :
       {std::to_string(number), kernels[number].at("name").get<std::string>()}) {
    const Outcome one = explain({"lenet", "--batch", "16", "--kernel", name});
    ASSERT_EQ(one.exit_code, 0) << one.err;
    EXPECT_THAT(one.out, HasSubstr("by " + rule + " from "));
    EXPECT_THAT(one.out, HasSubstr("lenet.cpp:"));
  }
  const Outcome none = explain({"lenet", "--batch", "16", "--kernel", "rows.sun"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("did you mean"));
}

TEST(Explain, explains_what_rules_give_one_after_another) {
  const Outcome outcome = explain({"lenet", "--batch", "4", "--rewrite", "greedy"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("chosen: asked for"));
  EXPECT_THAT(outcome.out, HasSubstr("relu-mask-above-pool"));  // of the kernels that it made
  EXPECT_THAT(outcome.out, Not(HasSubstr("e-graph")));
  EXPECT_THAT(outcome.out, Not(HasSubstr("no rule fits")));
}

TEST(Explain, finds_the_rules_that_change_bits) {
  // Those that compute something else, each of them enough by itself, are looked at elsewhere.
  std::string off = "divide-by-host-number";
  for (const std::string& rule : winograd_rules()) off += "," + rule;
  const Outcome outcome = explain(
      {"lenet", "--batch", "4", "--bisect", "--tolerance", "0", "--rules-off", off, "--json"});
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  const Json document = Json::parse(outcome.out);
  ASSERT_FALSE(document.at("causes").empty());
  // The pool's gradient is summed in another order; moving the mask, which the sum needs first,
  // keeps bits, and so does what the numerics of bits alone allow.
  EXPECT_THAT(document.at("causes").at(0).dump(), HasSubstr("sum-of-pool-gradient"));
  EXPECT_LT(document.at("causes").at(0).size(), document.at("rules").size());
  EXPECT_FALSE(document.at("differences").empty());
  const Outcome strict =
      explain({"lenet", "--batch", "4", "--bisect", "--tolerance", "0", "--numerics", "strict"});
  EXPECT_EQ(strict.exit_code, 0) << strict.err;
  EXPECT_THAT(strict.out, HasSubstr("nothing differs by more than 0"));
}

// Rules that were applied before the graph was differentiated are among them.
TEST(Explain, finds_the_canonical_rules_that_change_bits) {
  const TemporaryFolder folder;
  const std::string file = folder.file("shares.txt");
  std::ofstream(file) << R"(graph {
  %0 = input {name="x", dtype=f32, shape=[16,100]} : f32[16,100]
  %1 = exp(%0) : f32[16,100]
  %2 = sum(%1) {axes=[1], keepdims=true} : f32[16,1]
  %3 = broadcast_to(%2) {shape=[16,100]} : f32[16,100]
  %4 = div(%1, %3) : f32[16,100]
  output "y" = %4
})";
  const Outcome outcome = explain({file, "--bisect", "--tolerance", "0", "--json"});
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  const Json document = Json::parse(outcome.out);
  EXPECT_EQ(document.at("causes"), Json::parse(R"([["softmax"]])"));
  const Outcome off =
      explain({file, "--bisect", "--tolerance", "0", "--rules-off", "softmax", "--json"});
  EXPECT_EQ(off.exit_code, 0) << off.out;
}

TEST(Explain, finds_nothing_where_results_are_close) {
  const Outcome outcome = explain({"lenet", "--batch", "4", "--bisect"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(
      outcome.out,
      ContainsRegex("nothing differs by more than 0.01: with [1-9][0-9]* rules the largest"));
  const Outcome negative = explain({"mlp", "--bisect", "--tolerance", "-1"});
  EXPECT_EQ(negative.exit_code, 2);
  EXPECT_THAT(negative.err, HasSubstr("--tolerance must be 0 or more"));
}

class ExplainRun : public TrainingTest {};

TEST_F(ExplainRun, explains_the_step_and_the_evaluation_of_a_run) {
  const Outcome trained = run_pantala(train(
      "run", {"--max-steps", "2", "--set", "optimizer.name=\"sgd\"", "--set", "accumulate=2"}));
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const Outcome outcome = explain({file("run"), "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json steps = Json::parse(outcome.out).at("steps");
  ASSERT_EQ(steps.size(), 2u);  // as the run's config says
  EXPECT_EQ(steps[0].at("role"), "accumulate");
  EXPECT_THAT(steps[0].at("given").dump(), HasSubstr("f32[16,12]"));
  const Outcome smaller = explain({file("run"), "--batch", "5", "--accumulate", "1", "--json"});
  ASSERT_EQ(smaller.exit_code, 0) << smaller.err;
  const Json one = Json::parse(smaller.out).at("steps");
  ASSERT_EQ(one.size(), 1u);
  EXPECT_THAT(one[0].at("given").dump(), HasSubstr("f32[5,12]"));
  const Outcome forward = explain({file("run"), "--inference", "--json"});
  ASSERT_EQ(forward.exit_code, 0) << forward.err;
  const Json evaluation = Json::parse(forward.out).at("steps").at(0);
  EXPECT_LT(evaluation.at("given").size(), steps[0].at("given").size());
  const Outcome page = explain({file("run"), "--html", file("page.html")});
  ASSERT_EQ(page.exit_code, 0) << page.err;
  EXPECT_THAT(bytes("page.html"), HasSubstr("</html>"));
}

TEST_F(ExplainRun, refuses_options_that_a_run_does_not_have) {
  ASSERT_EQ(run_pantala(train("run", {"--max-steps", "1"})).exit_code, 0);
  const Outcome loss = explain({file("run"), "--loss", "loss"});
  EXPECT_EQ(loss.exit_code, 2);
  EXPECT_THAT(loss.err, HasSubstr("--loss is for files: a run has its own loss"));
  const Outcome forward = explain({file("run"), "--inference", "--accumulate", "2"});
  EXPECT_EQ(forward.exit_code, 2);
  EXPECT_THAT(forward.err, HasSubstr("--accumulate is for training"));
}

TEST(Explain, refuses_what_it_cannot_explain) {
  const Outcome none = explain({"mlp", "--rewrite", "none"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("nothing is chosen with --rewrite none"));
  const Outcome both = explain(
      {PANTALA_SOURCE_DIR "/tests/golden/gradient.in.txt", "--loss", "loss", "--inference"});
  EXPECT_EQ(both.exit_code, 2);
  EXPECT_THAT(both.err, HasSubstr("--inference and --loss"));
  const Outcome weights = explain({PANTALA_SOURCE_DIR "/tests/fixtures/layers.safetensors"});
  EXPECT_EQ(weights.exit_code, 2);
  EXPECT_THAT(weights.err, HasSubstr("a safetensors file has no graph that could be compiled"));
  const Outcome rule = explain({"mlp", "--rules-off", "choice-of-sam"});
  EXPECT_EQ(rule.exit_code, 2);
  EXPECT_THAT(rule.err, HasSubstr("did you mean 'choice-of-same'?"));
  const Outcome level = explain({"mlp", "--rewrite", "greedyy"});
  EXPECT_EQ(level.exit_code, 2);
  EXPECT_THAT(level.err, HasSubstr("rewrite must be one of none, greedy, egraph"));
}

}  // namespace
}  // namespace pantala::tests::explain_test
