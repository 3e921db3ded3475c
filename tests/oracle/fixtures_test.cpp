// Every recorded case is one test. PANTALA_FIXTURES names another folder of cases than the
// project's own.
#include "tools/fixtures/fixtures.h"

#include <gtest/gtest.h>

#include <cctype>
#include <cstdlib>

namespace pantala::tools {
namespace {

const Fixtures& fixtures() {
  static const Fixtures all([] {
    const char* folder = std::getenv("PANTALA_FIXTURES");
    return folder && *folder ? folder : PANTALA_FIXTURES_DIR;
  }());
  return all;
}

std::vector<std::string> available_cases() {
  std::vector<std::string> names;
  for (const std::string& name : fixtures().names())
    if (fixtures().available(name)) names.push_back(name);
  return names;
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

class Recorded : public testing::TestWithParam<std::string> {};

TEST_P(Recorded, AgreesOnTheInterpreter) {
  const CaseResult result = fixtures().run(GetParam(), Device::ref);
  for (const Mismatch& mismatch : result.mismatches)
    ADD_FAILURE() << result.name << ": " << to_text(mismatch);
}

INSTANTIATE_TEST_SUITE_P(Fixtures, Recorded, testing::ValuesIn(available_cases()), test_name);

}  // namespace
}  // namespace pantala::tools
