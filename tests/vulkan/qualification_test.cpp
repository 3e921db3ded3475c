// Drivers that are wrong are found by the qualification: whatever kind of kernel computes something
// else, and whatever cannot be run at all.
#include "runtime/qualification.h"

#include <gmock/gmock.h>

#include <set>

#include "vulkan/vulkan_case.h"

namespace pantala::vulkan_tests {
namespace {

using device::vulkan::faults;
using runtime::Qualification;
using runtime::QualifiedStep;
using testing::HasSubstr;

class Qualifications : public OnVulkan {
 protected:
  void SetUp() override {
    OnVulkan::SetUp();
    if (!wants_all()) GTEST_SKIP() << "PANTALA_VULKAN_TESTS is not all";
  }
};

std::vector<std::string> wrong_steps(const Qualification& made) {
  std::vector<std::string> names;
  for (const QualifiedStep& step : made.steps)
    if (!step.wrong.empty()) names.push_back(step.name);
  return names;
}

// One kind after the other. Those that stand beside it in all of its steps may be refused with it,
// none that is right elsewhere.
TEST_F(Qualifications, find_every_kind_of_kernel_that_computes_something_else) {
  const Qualification right = runtime::qualify(test_device());
  ASSERT_TRUE(right.is_right()) << right.text();
  std::set<std::string> kinds;
  for (const QualifiedStep& step : right.steps)
    kinds.insert(step.kernels.begin(), step.kernels.end());
  EXPECT_GE(kinds.size(), 12U);
  for (const std::string& kind : kinds) {
    SCOPED_TRACE(kind);
    faults().perturbed_kernel = kind;
    const Qualification made = runtime::qualify(test_device());
    EXPECT_FALSE(made.is_right());
    EXPECT_THAT(made.refused(), testing::Contains(kind)) << made.text();
  }
}

// No double precision, no memory of bytes, no subgroups: what needs the first is refused by name,
// and no kind of kernels for its sake.
TEST_F(Qualifications, of_a_device_that_lacks_something_refuse_nothing_else) {
  faults().plain = true;
  const Qualification made = runtime::qualify(test_device());
  EXPECT_TRUE(made.is_right()) << made.text();
  EXPECT_THAT(made.refused(), testing::IsEmpty());
  EXPECT_THAT(made.text(), testing::AllOf(HasSubstr("13 steps agree with the CPU"),
                                          HasSubstr("rotations (Vulkan: kernel "),
                                          HasSubstr("needs numbers of f64 on the way")));
}

// The driver refuses one step, or the device is lost in it: the others can be used.
TEST_F(Qualifications, of_a_step_that_cannot_be_run_leave_the_rest_of_the_device) {
  // Each is behind the first device, which is that of the arithmetic, and some steps.
  using device::vulkan::Faults;
  const std::pair<std::int64_t Faults::*, std::int64_t> places[] = {
      {&Faults::allocation, 300}, {&Faults::submission, 20}, {&Faults::waiting, 20}};
  for (const auto& [fault, number] : places) {
    faults().*fault = number;
    const Qualification made = runtime::qualify(test_device());
    EXPECT_LE(faults().*fault, 0);
    ASSERT_EQ(wrong_steps(made).size(), 1U) << made.text();
    for (const QualifiedStep& step : made.steps) EXPECT_EQ(step.failed, !step.wrong.empty());
    EXPECT_FALSE(made.refused().empty());
    EXPECT_EQ(made.steps.size(), 14U);
  }
}

}  // namespace
}  // namespace pantala::vulkan_tests
