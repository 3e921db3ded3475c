// Recorded cases on a Vulkan device: single ops forward and backward within twice the tolerance
// that the CPU has, every optimizer, and training of whole models. `make test` runs a part of the
// ops and the small models; with PANTALA_VULKAN_TESTS=all (`make test-vulkan`) it is all of them.
#include "tools/fixtures/fixtures.h"

#include <gtest/gtest.h>

#include <cctype>
#include <cstdlib>

#include "vulkan/vulkan_case.h"

namespace pantala::vulkan_tests {
namespace {

const tools::Fixtures& fixtures() {
  static const tools::Fixtures all(PANTALA_FIXTURES_DIR);
  return all;
}

bool is_model(const std::string& name) { return name.starts_with("models/"); }

// Of the models those whose curves are asked for and all optimizers; of the ops every fourth one,
// unless all are.
std::vector<std::string> cases() {
  constexpr std::string_view kModels[] = {"models/mlp", "models/lenet", "models/smollm2_small",
                                          "models/whisper_tiny_short"};
  std::vector<std::string> names;
  std::size_t number = 0;
  for (const std::string& name : fixtures().names()) {
    if (!fixtures().available(name)) continue;
    const bool known = std::ranges::find(kModels, name) != std::end(kModels);
    const bool small = name == "models/mlp" || name == "models/lenet";
    if (is_model(name) ? known && (wants_all() || small)
                       : wants_all() || name.starts_with("optimizers/") || number++ % 4 == 0)
      names.push_back(name);
  }
  return names;
}

class RecordedOnVulkan : public OnVulkan, public ::testing::WithParamInterface<std::string> {};

TEST_P(RecordedOnVulkan, agrees) {
  const tools::CaseResult result = fixtures().run(GetParam(), {test_device()});
  for (const tools::Mismatch& mismatch : result.mismatches)
    ADD_FAILURE() << result.name << ": " << to_text(mismatch);
  EXPECT_FALSE(result.values.empty());
}

std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Fixtures, RecordedOnVulkan, ::testing::ValuesIn(cases()), test_name);

}  // namespace
}  // namespace pantala::vulkan_tests
