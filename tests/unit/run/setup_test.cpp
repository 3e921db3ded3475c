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

}  // namespace
}  // namespace pantala::run
