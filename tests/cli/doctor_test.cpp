// pantala doctor: a healthy machine, and one without a place for its cache.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/training.h"

namespace pantala::tests::doctor_test {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

using Doctor = TrainingTest;

TEST_F(Doctor, every_check_has_a_line) {
  const Outcome outcome = run_pantala({"doctor"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out;
  for (const char* check : {"version", "cpu", "threads", "memory", "disk", "cache", "data", "gpu"})
    EXPECT_THAT(outcome.out, ContainsRegex(std::string("(ok  |warn)  ") + check + " +[^ ]"));
  EXPECT_THAT(outcome.out, HasSubstr("ok    training  5 steps give the known losses, the same "
                                     "bits on 1 and 2 threads\n"));
}

TEST_F(Doctor, json_has_the_same_findings) {
  const Outcome outcome = run_pantala({"doctor", "--json"});
  const nlohmann::json json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json.at("ok"), true);
  EXPECT_GE(json.at("checks").size(), 9U);
  EXPECT_EQ(json.at("checks").back().at("health"), "ok");
}

TEST_F(Doctor, a_cache_that_cannot_be_made_is_a_warning) {
  std::ofstream(file("taken")) << "a file";
  ::setenv("XDG_CACHE_HOME", file("taken").c_str(), 1);
  const Outcome outcome = run_pantala({"doctor"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("warn  cache     there is no folder for compiled plans\n"));
}

}  // namespace
}  // namespace pantala::tests::doctor_test
