// The acceptance checklist against the tests, as a function of texts: which ids have no test, and
// which pending ones have.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pantala::tests {

struct TestName {
  std::string suite, name;
  bool operator==(const TestName&) const = default;
};

// The tests that a source file defines: TEST, TEST_F, TEST_P and TYPED_TEST at the start of a line.
std::vector<TestName> tests_in(std::string_view source);

// The first word of each line that is neither empty nor a comment ('#').
std::vector<std::string> ids_in(std::string_view text);

// One line per id without a test, per test of an id that is unknown or pending, and per pending id
// that is not on the list. The id of a test is what its name begins with: "T08_no_epochs".
std::vector<std::string> checklist_problems(const std::vector<std::string>& ids,
                                            const std::vector<std::string>& pending,
                                            const std::vector<TestName>& tests);

// One line per test that is not named like Suite.says_what_it_checks or
// Suite.T08_says_what_it_checks. That a suite is one of tests goes without saying.
std::vector<std::string> naming_problems(const std::vector<TestName>& tests);

}  // namespace pantala::tests
