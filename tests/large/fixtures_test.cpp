// Recorded models of millions of parameters, as machine code. PANTALA_FIXTURES names another folder
// of cases than the project's own.
#include "tools/fixtures/fixtures.h"

#include <gtest/gtest.h>

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

std::vector<std::string> large_models() {
  std::vector<std::string> names;
  for (const std::string& name : fixtures().names())
    if (fixtures().available(name) && fixtures().large(name))
      names.push_back(name.substr(name.find('/') + 1));
  return names;
}

class LargeModel : public ::testing::TestWithParam<std::string> {};

TEST_P(LargeModel, agrees_as_machine_code) {
  const CaseResult result = fixtures().run("models/" + GetParam(), {"cpu"});
  for (const Mismatch& mismatch : result.mismatches)
    ADD_FAILURE() << result.name << ": " << to_text(mismatch);
  EXPECT_FALSE(result.values.empty());
}

std::string test_name(const ::testing::TestParamInfo<std::string>& info) { return info.param; }

INSTANTIATE_TEST_SUITE_P(Fixtures, LargeModel, ::testing::ValuesIn(large_models()), test_name);
// Another folder may have none.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(LargeModel);

}  // namespace
}  // namespace pantala::tools
