// The command line as a whole: help, version, unknown words, exit codes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/run.h"

namespace pantala::tests::command_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

TEST(Command, prints_its_version) {
  const Outcome outcome = run_pantala({"--version"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, StartsWith("pantala "));
  EXPECT_THAT(outcome.err, IsEmpty());
}

TEST(Command, every_verb_has_help) {
  const Outcome all = run_pantala({"--help"});
  EXPECT_EQ(all.exit_code, 0);
  for (const char* verb : {"devices", "fixtures", "ops"}) {
    EXPECT_THAT(all.out, HasSubstr(verb));
    const Outcome one = run_pantala({verb, "--help"});
    EXPECT_EQ(one.exit_code, 0);
    EXPECT_THAT(one.out, HasSubstr(std::string("Usage: pantala ") + verb));
    EXPECT_THAT(one.err, IsEmpty());
  }
}

TEST(Command, without_a_verb_says_what_there_is) {
  const Outcome outcome = run_pantala({});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.out, IsEmpty());
  EXPECT_THAT(outcome.err, HasSubstr("expected a verb"));
  EXPECT_THAT(outcome.err, HasSubstr("fixtures"));
}

TEST(Command, unknown_verb_gets_the_nearest_one) {
  const Outcome outcome = run_pantala({"fixture"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.err, "pantala: unknown verb 'fixture'; did you mean 'fixtures'?\n");
  EXPECT_THAT(outcome.out, IsEmpty());
}

TEST(Command, unknown_option_gets_the_nearest_one) {
  EXPECT_EQ(run_pantala({"ops", "--markdwn"}).err,
            "pantala: unknown option '--markdwn'; did you mean '--markdown'?\n");
  EXPECT_EQ(run_pantala({"fixtures", "somewhere", "--devise=ref"}).err,
            "pantala: unknown option '--devise'; did you mean '--device'?\n");
  EXPECT_EQ(run_pantala({"--verson"}).err,
            "pantala: unknown option '--verson'; did you mean '--version'?\n");
  EXPECT_EQ(run_pantala({"ops", "--markdwn"}).exit_code, 2);
}

TEST(Command, surplus_argument_is_an_error) {
  const Outcome outcome = run_pantala({"ops", "relu", "silu"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.err, "pantala: ops: unexpected argument 'silu'\n");
}

}  // namespace
}  // namespace pantala::tests::command_test
