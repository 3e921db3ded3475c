// Which kernels are refused, by what the steps of a qualification have shown. The steps themselves
// run on a device (tests/vulkan).
#include "runtime/qualification.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pantala::runtime {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Qualification of(std::vector<QualifiedStep> steps) {
  return {.identity = "a device", .steps = std::move(steps)};
}

TEST(Qualification, that_is_right_refuses_nothing) {
  const Qualification made = of({{"rows", "", {"map", "reduce"}}, {"sums", "", {"map"}}});
  EXPECT_TRUE(made.is_right());
  EXPECT_THAT(made.refused(), IsEmpty());
  EXPECT_EQ(made.text(), "2 steps agree with the CPU");
}

TEST(Qualification, refuses_the_kind_that_explains_most_wrong_steps) {
  const Qualification made = of({{"sums", "", {"map"}},
                                 {"products", "y[0] is 1", {"map", "product", "transpose"}},
                                 {"recurrent", "y[0] is 2", {"map", "product", "scan"}},
                                 {"searches", "y[0] is 3", {"map", "topk"}}});
  EXPECT_FALSE(made.is_right());
  EXPECT_THAT(made.refused(), ElementsAre("product", "topk"));
  EXPECT_THAT(made.text(), HasSubstr("3 of 4 steps are wrong (products: y[0] is 1; "));
}

// Right for some numbers and wrong for others: silence would be trust.
TEST(Qualification, refuses_a_kind_that_was_right_elsewhere_if_nothing_else_explains_a_step) {
  const Qualification made = of({{"sums", "", {"map", "reduce"}},
                                 {"elements", "y[3] is nan", {"map", "reduce"}},
                                 {"rows", "", {"map"}}});
  EXPECT_FALSE(made.is_right());
  EXPECT_THAT(made.refused(), ElementsAre("reduce"));
  EXPECT_THAT(of({{"sums", "", {"map"}}, {"elements", "y[3] is nan", {"map"}}}).refused(),
              ElementsAre("map"));
}

TEST(Qualification, says_so_where_no_kernel_can_be_named) {
  const Qualification made = of({{"sums", "", {"map"}}, {"rows", "it is not done here", {}}});
  EXPECT_FALSE(made.is_right());
  EXPECT_THAT(made.refused(), IsEmpty());
  EXPECT_THAT(made.text(), HasSubstr("1 of 2 steps are wrong (rows: it is not done here)"));
  EXPECT_THAT(made.text(), HasSubstr("refused kernels: none"));
}

}  // namespace
}  // namespace pantala::runtime
