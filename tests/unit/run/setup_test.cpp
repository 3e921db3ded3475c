// How a config becomes what a step is compiled with.
#include "run/setup.h"

#include <gtest/gtest.h>

#include "run/core/config.h"

namespace pantala::run {
namespace {

TEST(Setup, says_what_an_update_takes_of_its_batches) {
  const auto options = [](const std::string& normalize) {
    return compile_options(
        make_config({parse_set("accumulate=3"), parse_set("accumulate_normalize=" + normalize)}));
  };
  EXPECT_EQ(options("true").accumulation_steps, 3);
  EXPECT_TRUE(options("true").normalize);
  EXPECT_FALSE(options("false").normalize);
}

TEST(Setup, rewrites_evaluations_as_the_steps) {
  const RunConfig config = make_config({parse_set("compile.rewrite=\"greedy\""),
                                        parse_set("compile.numerics=\"strict\""),
                                        parse_set("compile.rules_off=\"choice-of-same\"")});
  for (const Phase phase : {Phase::training, Phase::evaluation}) {
    const CompileOptions options = compile_options(config, phase);
    EXPECT_EQ(options.rewrite, Rewrite::greedy);
    EXPECT_EQ(options.numerics, Numerics::strict);
    EXPECT_EQ(options.rules_off, std::vector<std::string>{"choice-of-same"});
    EXPECT_EQ(options.optimizer.has_value(), phase == Phase::training);
    EXPECT_EQ(options.non_finite == NonFiniteGuard::none, phase == Phase::evaluation);
  }
}

}  // namespace
}  // namespace pantala::run
