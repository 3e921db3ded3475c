// The search: what it chooses, and what its choice may depend on.
#include "search/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/options.h"
#include "compiler/pipeline.h"
#include "pantala/error.h"
#include "pantala/ops.h"
#include "pantala/text.h"
#include "pantala/zoo/presets.h"
#include "rewrite/rules/rules.h"
#include "schedule/cpu/archetypes.h"
#include "schedule/cpu/cost_tables.h"
#include "schedule/schedule.h"
#include "support/compiled.h"
#include "support/errors.h"

namespace pantala::search::search_test {
namespace {

using ::testing::HasSubstr;

zoo::Model model_named(std::string_view name, std::int64_t batch) {
  return zoo::preset(name).make({.batch = batch, .training = true});
}

// The lowered graph of a training step.
Graph training_step(const zoo::Model& model) {
  const CompileOptions options{.optimizer = optim::adam()};
  Report report;
  const auto steps = compiler::make_step_graphs(
      compiler::Compilation::training(model.graph, model.loss, options), report);
  return schedule::lower(steps.at(0).graph, schedule::cpu::archetypes());
}

Outcome searched(const Graph& lowered, Level level,
                 rewrite::Promise promise = rewrite::Promise::real,
                 std::vector<std::string> off = {}) {
  return search(lowered, {.level = level,
                          .promise = promise,
                          .off = std::move(off),
                          .archetypes = schedule::cpu::archetypes(),
                          .table = schedule::cpu::shipped_cost_table(32)});
}

TEST(Search, gives_a_lenet_a_better_graph) {
  const Graph lowered = training_step(model_named("lenet", 64));
  const Outcome found = searched(lowered, Level::egraph);
  ASSERT_GT(found.chosen, 0u);
  const Candidate &given = found.candidates[0], &chosen = found.candidates[found.chosen];
  EXPECT_LT(chosen.microseconds, given.microseconds);
  EXPECT_LT(chosen.bytes, 0.9 * given.bytes);
  EXPECT_LT(chosen.peak_bytes, 0.7 * static_cast<double>(given.peak_bytes));
  EXPECT_EQ(found.stop_reason, "saturated");
  for (const RuleUse& use : found.rules) EXPECT_GT(use.matches, 0) << use.name;
  EXPECT_NE(to_text(found.graph), to_text(lowered));
}

TEST(Search, says_why_candidates_were_rejected) {
  const Outcome found = searched(training_step(model_named("lenet", 64)), Level::egraph);
  const std::string& chosen = found.candidates[found.chosen].name;
  EXPECT_EQ(found.candidates[found.chosen].verdict, "chosen: the cheapest");
  for (std::size_t k = 0; k < found.candidates.size(); ++k)
    if (k != found.chosen) {
      EXPECT_THAT(found.candidates[k].verdict, HasSubstr("than " + chosen));
    }
  EXPECT_THAT(found.candidates[0].verdict, HasSubstr("dearer than " + chosen + " by "));
  ASSERT_FALSE(found.trials.empty());
  for (const Trial& trial : found.trials) {
    EXPECT_THAT(trial.type, HasSubstr("f32["));
    EXPECT_GT(trial.microseconds, 0);
  }
}

TEST(Search, says_that_too_little_is_won) {
  // Without the rules for pools, other algorithms and other layouts what is left is worth less than
  // a hundredth.
  std::vector<std::string> off = tests::winograd_rules();
  off.insert(off.end(),
             {"relu-mask-above-pool", "sum-of-pool-gradient", std::string(kLayoutsName)});
  const Outcome found =
      searched(training_step(model_named("lenet", 64)), Level::egraph, rewrite::Promise::real, off);
  ASSERT_EQ(found.chosen, 0u);
  EXPECT_EQ(found.candidates[0].verdict, "chosen: nothing is more than 1 % better");
  EXPECT_THAT(found.candidates.at(1).verdict,
              ::testing::MatchesRegex("only 0\\.[0-9]+ % better than given, which must be more "
                                      "than 1 %|no better than given"));
}

TEST(Search, says_that_no_rule_fits) {
  Graph graph;
  graph.output("y", exp(graph.input("x", {8})));
  const Outcome found =
      searched(schedule::lower(graph, schedule::cpu::archetypes()), Level::egraph);
  ASSERT_EQ(found.candidates.size(), 1u);
  EXPECT_EQ(found.candidates[0].verdict, "chosen: no rule fits");
}

TEST(Search, never_chooses_what_is_expected_to_take_longer) {
  for (const char* name : {"mlp", "lenet", "llama-bytes"}) {
    const Graph lowered = training_step(model_named(name, 4));
    for (const rewrite::Promise promise : {rewrite::Promise::order, rewrite::Promise::real}) {
      const Outcome found = searched(lowered, Level::egraph, promise);
      EXPECT_LE(found.candidates[found.chosen].microseconds, found.candidates[0].microseconds)
          << name;
    }
  }
}

TEST(Search, greedy_orders_are_drawn_by_their_number) {
  const Graph lowered = training_step(model_named("lenet", 64));
  const auto ordered = [&](int order) {
    return search(lowered, {.level = Level::greedy,
                            .greedy_order = order,
                            .archetypes = schedule::cpu::archetypes(),
                            .table = schedule::cpu::shipped_cost_table(32)});
  };
  EXPECT_EQ(to_text(ordered(0).graph), to_text(searched(lowered, Level::greedy).graph));
  for (const int order : {1, 2, 3}) {
    const Outcome found = ordered(order);
    EXPECT_EQ(to_text(found.graph), to_text(ordered(order).graph));
    EXPECT_NE(to_text(found.graph), to_text(lowered));
  }
}

TEST(Search, none_is_the_graph_as_it_is) {
  const Graph lowered = training_step(model_named("lenet", 8));
  const Outcome found = searched(lowered, Level::none);
  EXPECT_EQ(to_text(found.graph), to_text(lowered));
  EXPECT_EQ(found.candidates.size(), 1u);
}

TEST(Search, uses_no_rule_that_is_switched_off_or_promises_too_little) {
  const Graph lowered = training_step(model_named("lenet", 64));
  const auto names = [](const Outcome& found) {
    std::vector<std::string> all;
    for (const RuleUse& use : found.rules) all.push_back(use.name);
    return all;
  };
  using ::testing::Contains;
  using ::testing::Not;
  EXPECT_THAT(names(searched(lowered, Level::egraph)), Contains("sum-of-pool-gradient"));
  EXPECT_THAT(names(searched(lowered, Level::egraph, rewrite::Promise::order)),
              Not(Contains("sum-of-pool-gradient")));
  EXPECT_THAT(
      names(searched(lowered, Level::egraph, rewrite::Promise::real, {"sum-of-pool-gradient"})),
      Not(Contains("sum-of-pool-gradient")));
}

// Choices are made for the table's processor: the threads of the machine change nothing.
TEST(Search, gives_the_same_graph_for_any_number_of_threads) {
  const zoo::Model model = model_named("lenet", 64);
  CompileOptions options{.optimizer = optim::adam()};
  std::string first;
  for (const int threads : {1, 2, 3, 7}) {
    options.threads = threads;
    Report report;
    const auto steps = compiler::make_step_graphs(
        compiler::Compilation::training(model.graph, model.loss, options), report);
    const std::string text =
        to_text(compiler::choose_graph(steps.at(0), compiler::host_options(options), report));
    if (first.empty()) first = text;
    EXPECT_EQ(text, first) << threads;
  }
}

TEST(Search, a_rule_that_there_is_none_of_is_a_mistake) {
  CompileOptions options;
  options.rules_off = {"sum-of-pool-gradients"};
  EXPECT_THAT(tests::message_of<TypeError>([&] { compiler::host_options(options); }),
              HasSubstr("there is no rule 'sum-of-pool-gradients'; did you mean "
                        "'sum-of-pool-gradient'?"));
}

}  // namespace
}  // namespace pantala::search::search_test
