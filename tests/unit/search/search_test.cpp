// The search: what it chooses, and what its choice may depend on.
#include "search/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

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
#include "support/lowered_step.h"
#include "tools/bench/workloads.h"

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

// What is given stays unless something is more than a hundredth faster, or smaller and no slower;
// otherwise the smallest estimate wins, less memory within half a percent of it.
TEST(Search, never_chooses_what_is_expected_to_take_longer) {
  for (const char* name : {"mlp", "lenet", "llama-bytes", "resnet18"}) {
    const Graph lowered = training_step(model_named(name, 4));
    for (const rewrite::Promise promise : {rewrite::Promise::order, rewrite::Promise::real}) {
      const Outcome found = searched(lowered, Level::egraph, promise);
      const Candidate &given = found.candidates[0], &chosen = found.candidates[found.chosen];
      EXPECT_LE(chosen.microseconds, given.microseconds) << name;
      double least = given.microseconds;
      for (const Candidate& one : found.candidates) least = std::min(least, one.microseconds);
      if (found.chosen == 0) {
        EXPECT_GE(least, 0.985 * given.microseconds) << name;
        continue;
      }
      EXPECT_LE(chosen.microseconds, 1.005 * least) << name;
      EXPECT_TRUE(chosen.microseconds < 0.99 * given.microseconds ||
                  static_cast<double>(chosen.peak_bytes) <=
                      0.8 * static_cast<double>(given.peak_bytes))
          << name;
    }
  }
}

// Two ways to write the same, of which one takes more: either may be what the user wrote.
struct TwoWays {
  Graph cheap, dear;
  TwoWays() {
    const auto make = [](bool is_dear) {
      Graph graph;
      const Tensor x = graph.input("x", {512, 512});
      graph.output("y", is_dear ? log(exp(sin(x) * 1.5)) : sin(x) * 1.5);
      return schedule::lower(graph, schedule::cpu::archetypes());
    };
    cheap = make(false);
    dear = make(true);
  }
  static Outcome searched(const Graph& canonical, const Graph& written, Level level) {
    return search(canonical, {.level = level,
                              .written = &written,
                              .archetypes = schedule::cpu::archetypes(),
                              .table = schedule::cpu::shipped_cost_table(32)});
  }
};

TEST(Search, a_canonical_form_that_takes_longer_is_left) {
  const TwoWays ways;
  for (const Level level : {Level::greedy, Level::egraph}) {
    const Outcome worse = TwoWays::searched(ways.dear, ways.cheap, level);
    EXPECT_EQ(to_text(worse.graph), to_text(ways.cheap));
    EXPECT_THAT(worse.candidates.at(1).name, "canonical");
    const Outcome better = TwoWays::searched(ways.cheap, ways.dear, level);
    EXPECT_EQ(to_text(better.graph), to_text(ways.cheap));
  }
  const Outcome found = TwoWays::searched(ways.dear, ways.cheap, Level::egraph);
  EXPECT_EQ(found.chosen, 0u);
  EXPECT_THAT(found.candidates.at(1).verdict, HasSubstr("dearer than given by "));
}

TEST(Search, a_canonical_form_that_stays_finite_is_kept_whatever_it_takes) {
  const TwoWays ways;
  const Outcome found = search(ways.dear, {.level = Level::egraph,
                                           .written = &ways.cheap,
                                           .stays_finite = true,
                                           .archetypes = schedule::cpu::archetypes(),
                                           .table = schedule::cpu::shipped_cost_table(32)});
  EXPECT_EQ(to_text(found.graph), to_text(ways.dear));
  EXPECT_FALSE(found.is_of_written);
  EXPECT_EQ(found.candidates[0].verdict, "overflows on the way, where the canonical form does not");
}

// A rival of what is left out would take its place: both are left out together.
TEST(Search, leaves_out_what_computes_the_same_values_otherwise) {
  const tools::Workload made = tools::make_workload("lenet64", tools::BenchMode::infer);
  const Graph lowered = tests::lowered_step(made.graph.without_updates(), {}, {});
  const Outcome found = searched(lowered, Level::egraph);
  const auto is_kept = [](const Trial& trial) {
    return trial.kept && !trial.with &&
           trial.rule == "convolution-by-winograd4, convolution-by-winograd2";
  };
  EXPECT_TRUE(std::ranges::any_of(found.trials, is_kept));
}

TEST(Search, a_canonical_form_that_is_the_same_is_no_candidate) {
  const TwoWays ways;
  const Outcome found = TwoWays::searched(ways.cheap, ways.cheap, Level::egraph);
  ASSERT_EQ(found.candidates.size(), 1u);
  EXPECT_EQ(found.candidates[0].name, "given");
}

TEST(Search, a_step_knows_what_the_user_wrote) {
  Graph graph;
  const Tensor x = graph.input("x", {2, 2, 64, 16}), w = graph.parameter("w", {16});
  const Tensor q = x * w, scores = matmul(q, q, {.transpose_b = true}) / 4;
  const Tensor loss = mean(square(matmul(softmax(scores), q)));  // attention
  const auto step = [&](const CompileOptions& options) {
    Report report;
    return compiler::make_step_graphs(compiler::Compilation::training(graph, loss, options), report)
        .at(0);
  };
  const CompileOptions plain{.rewrite = Rewrite::none, .optimizer = optim::adam()};
  const compiler::StepGraph canonical = step({.optimizer = optim::adam()});
  EXPECT_FALSE(step(plain).written.has_value());
  ASSERT_TRUE(canonical.written.has_value());
  EXPECT_EQ(to_text(*canonical.written), to_text(step(plain).graph));
  EXPECT_NE(to_text(canonical.graph), to_text(*canonical.written));
  const Outcome found =
      compiler::search_step(canonical, compiler::host_options({.optimizer = optim::adam()}));
  EXPECT_EQ(found.candidates.at(1).name, "canonical");
  EXPECT_LE(found.candidates[found.chosen].microseconds, found.candidates[0].microseconds);
}

// What can be tried of a large graph in time is enough to store less of it.
TEST(Search, decides_what_a_large_transformer_stores) {
  const tools::Workload made = tools::make_workload("smollm2_b1_s128", tools::BenchMode::train);
  const Graph lowered = tests::lowered_step(
      made.graph, made.loss, {.non_finite = NonFiniteGuard::watched, .optimizer = made.optimizer});
  ASSERT_GT(lowered.size(), 10'000u);
  const Outcome found = searched(lowered, Level::egraph);
  EXPECT_GE(found.trials.size(), 1u);
  EXPECT_FALSE(found.recomputed.empty());
  EXPECT_LT(static_cast<double>(found.candidates[found.chosen].peak_bytes),
            0.85 * static_cast<double>(found.candidates[0].peak_bytes));
}

Report planned(const tools::Workload& made, std::int64_t memory_limit) {
  const CompileOptions options{.memory_limit = memory_limit,
                               .non_finite = NonFiniteGuard::watched,
                               .optimizer = made.optimizer};
  Report canonical;
  const auto steps = compiler::make_step_graphs(
      compiler::Compilation::training(made.graph, made.loss, options), canonical);
  compiler::Options host = compiler::host_options(options);
  host.code = false;
  host.threads = 2;
  return compiler::compile_step(steps.at(0), host).report;
}

TEST(Search, a_transformer_has_the_memory_that_it_is_given) {
  const tools::Workload made = tools::make_workload("tfm8", tools::BenchMode::train);
  const Report free = planned(made, 0), limited = planned(made, 250'000'000);
  EXPECT_LE(free.peak_bytes, 400'000'000);
  EXPECT_LE(limited.peak_bytes, 250'000'000);
  EXPECT_LE(limited.predicted_us, 1.25 * free.predicted_us);
  // A limit that it keeps anyway is none.
  const Report wide = planned(made, free.peak_bytes);
  EXPECT_EQ(wide.peak_bytes, free.peak_bytes);
  EXPECT_EQ(wide.predicted_us, free.predicted_us);
  EXPECT_EQ(wide.recomputed.size(), free.recomputed.size());
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
class SearchThreads : public ::testing::TestWithParam<const char*> {};

TEST_P(SearchThreads, have_no_part_in_the_graph) {
  const zoo::Model model = model_named(GetParam(), 4);
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

INSTANTIATE_TEST_SUITE_P(Models, SearchThreads,
                         ::testing::Values("mlp", "lenet", "resnet18", "resnet50", "llama-bytes"));

TEST(Search, a_rule_that_there_is_none_of_is_a_mistake) {
  CompileOptions options;
  options.rules_off = {"sum-of-pool-gradients"};
  EXPECT_THAT(tests::message_of<TypeError>([&] { compiler::host_options(options); }),
              HasSubstr("there is no rule 'sum-of-pool-gradients'; did you mean "
                        "'sum-of-pool-gradient'?"));
}

}  // namespace
}  // namespace pantala::search::search_test
