// Every recorded case is two tests: on the interpreter in double, and through the compiler, as
// interpreted kernels and as machine code, which must agree to the bit. PANTALA_FIXTURES names
// another folder of cases than the project's own. Large models have a label of their own.
#include "tools/fixtures/fixtures.h"

#include <gtest/gtest.h>

#include <cctype>
#include <cstdlib>

#include "support/compiled.h"

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
    if (fixtures().available(name) && !fixtures().large(name)) names.push_back(name);
  return names;
}

std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

class Recorded : public ::testing::TestWithParam<std::string> {};

// What the device computed.
std::vector<Literal> check(const std::string& name, const Device& device) {
  const CaseResult result = fixtures().run(name, device);
  for (const Mismatch& mismatch : result.mismatches)
    ADD_FAILURE() << result.name << " on " << device.name << ": " << to_text(mismatch);
  EXPECT_FALSE(result.values.empty());
  std::vector<Literal> values;
  for (const auto& [tensor, value] : result.values) values.push_back(value);
  return values;
}

TEST_P(Recorded, agrees_on_the_interpreter) { check(GetParam(), {"ref"}); }

TEST_P(Recorded, agrees_compiled_and_kernels_and_machine_code_to_the_bit) {
  const std::vector<Literal> kernels = check(GetParam(), {"kir"}),
                             machine_code = check(GetParam(), {"cpu"});
  EXPECT_EQ(pantala::tests::differing_bits(kernels, machine_code), "");
}

INSTANTIATE_TEST_SUITE_P(Fixtures, Recorded, ::testing::ValuesIn(available_cases()), test_name);

}  // namespace
}  // namespace pantala::tools
