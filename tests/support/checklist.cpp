#include "support/checklist.h"

#include <fmt/format.h>

#include <regex>
#include <set>
#include <sstream>

namespace pantala::tests {

namespace {

// "T08" of "T08_no_epochs", or "".
std::string id_of(const std::string& name) {
  static const std::regex pattern("^([A-Z][0-9]{2})_.*");
  std::smatch match;
  return std::regex_match(name, match, pattern) ? match[1].str() : "";
}

}  // namespace

std::vector<TestName> tests_in(std::string_view source) {
  static const std::regex pattern(
      R"((^|\n)(TEST|TEST_F|TEST_P|TYPED_TEST)\(\s*(\w+)\s*,\s*(\w+)\s*\))");
  const std::string text(source);
  std::vector<TestName> tests;
  for (std::sregex_iterator at(text.begin(), text.end(), pattern), end; at != end; ++at)
    tests.push_back({(*at)[3].str(), (*at)[4].str()});
  return tests;
}

std::vector<std::string> ids_in(std::string_view text) {
  std::istringstream lines{std::string(text)};
  std::vector<std::string> ids;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string first;
    if (words >> first && first[0] != '#') ids.push_back(first);
  }
  return ids;
}

std::vector<std::string> checklist_problems(const std::vector<std::string>& ids,
                                            const std::vector<std::string>& pending,
                                            const std::vector<TestName>& tests) {
  const std::set<std::string> known(ids.begin(), ids.end()),
      waiting(pending.begin(), pending.end());
  std::set<std::string> tested;
  std::vector<std::string> problems;
  for (const TestName& test : tests) {
    const std::string id = id_of(test.name);
    if (id.empty()) continue;
    tested.insert(id);
    if (!known.contains(id))
      problems.push_back(fmt::format("{}.{}: the checklist has no {}", test.suite, test.name, id));
  }
  for (const std::string& id : ids)
    if (!tested.contains(id) && !waiting.contains(id))
      problems.push_back(fmt::format("{}: no test has this id", id));
  for (const std::string& id : waiting) {
    if (!known.contains(id))
      problems.push_back(fmt::format("{}: pending, but not on the checklist", id));
    if (tested.contains(id)) problems.push_back(fmt::format("{}: pending, but it has a test", id));
  }
  return problems;
}

std::vector<std::string> naming_problems(const std::vector<TestName>& tests) {
  static const std::regex suite("[A-Z][A-Za-z0-9]*"),
      name("([A-Z][0-9]{2}_)?[a-z0-9]+(_[a-z0-9]+)*");
  std::vector<std::string> problems;
  for (const TestName& test : tests)
    if (!std::regex_match(test.suite, suite) || test.suite.ends_with("Test") ||
        !std::regex_match(test.name, name))
      problems.push_back(fmt::format("{}.{}", test.suite, test.name));
  return problems;
}

}  // namespace pantala::tests
