// Every fact of the acceptance checklist has a test that bears its id, and all tests are named
// alike.
#include "support/checklist.h"

#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tree/project_files.h"

namespace pantala::tests {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<TestName> all_tests() {
  std::vector<TestName> tests;
  for (const SourceFile& file : project_files({"tests"}))
    for (TestName& test : tests_in(file.text)) tests.push_back(std::move(test));
  return tests;
}

std::vector<std::string> ids_of_file(const std::string& name) {
  return ids_in(read_text(std::string(PANTALA_SOURCE_DIR) + "/tests/seeds/" + name));
}

TEST(Checklist, every_fact_has_a_test_or_is_pending) {
  const std::vector<std::string> ids = ids_of_file("checklist.txt");
  ASSERT_GE(ids.size(), 177u);
  const auto problems = checklist_problems(ids, ids_of_file("pending.txt"), all_tests());
  EXPECT_THAT(problems, IsEmpty()) << fmt::format("{}", fmt::join(problems, "\n"));
}

TEST(TestNames, are_of_one_style) {
  const std::vector<TestName> tests = all_tests();
  ASSERT_GE(tests.size(), 1000u);
  const auto problems = naming_problems(tests);
  EXPECT_THAT(problems, IsEmpty()) << fmt::format("{}", fmt::join(problems, "\n"));
}

TEST(ChecklistCheck, finds_the_tests_of_a_source) {
  EXPECT_THAT(tests_in("TEST(A, one) {}\n  TEST(A, not_at_the_start)\nTEST_F(B,\n       two) {\n"),
              ElementsAre(TestName{"A", "one"}, TestName{"B", "two"}));
}

TEST(ChecklistCheck, ids_are_first_words) {
  EXPECT_THAT(ids_in("# A01 no\n\nA01 a fact\nA02\n"), ElementsAre("A01", "A02"));
}

TEST(ChecklistCheck, names_what_is_missing) {
  const std::vector<TestName> tests{{"S", "A01_holds"}, {"S", "says_something"}};
  EXPECT_THAT(checklist_problems({"A01"}, {}, tests), IsEmpty());
  EXPECT_THAT(checklist_problems({"A01", "A02"}, {"A02"}, tests), IsEmpty());
  EXPECT_THAT(checklist_problems({"A01", "A02"}, {}, tests),
              ElementsAre("A02: no test has this id"));
  EXPECT_THAT(checklist_problems({"A01", "A02"}, {"A01", "A02"}, tests),
              ElementsAre("A01: pending, but it has a test"));
  EXPECT_THAT(checklist_problems({"A01"}, {"A07"}, tests),
              ElementsAre("A07: pending, but not on the checklist"));
  EXPECT_THAT(checklist_problems({}, {}, tests),
              ElementsAre("S.A01_holds: the checklist has no A01"));
}

TEST(ChecklistCheck, names_of_other_styles_are_found) {
  EXPECT_THAT(naming_problems({{"Suite", "says_what"},
                               {"Suite", "T08_says_what_2"},
                               {"Suite", "SaysWhat"},
                               {"suite", "says_what"},
                               {"Suite", "T08_Says"},
                               {"Suite", "says__what"},
                               {"SuiteTest", "says_what"}}),
              ElementsAre("Suite.SaysWhat", "suite.says_what", "Suite.T08_Says", "Suite.says__what",
                          "SuiteTest.says_what"));
}

}  // namespace
}  // namespace pantala::tests
