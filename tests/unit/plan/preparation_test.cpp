// The rules of plans with a preparation: whatever would make a run without it wrong is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "pantala/error.h"
#include "plan/serialize.h"
#include "support/errors.h"
#include "unit/plan/plan_case.h"

namespace pantala::plan {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kSize = 100;

// p = w * w + c is prepared; y = p * p + c and x is added to it.
Plan prepared_plan() {
  Plan p;
  p.name = "prepared_plan";
  add_uniform(p, "rate", DType::f32);
  const std::uint32_t k_square = add_unit(p, square()), k_axpy = add_unit(p, axpy());
  const std::uint32_t x = add_region_buffer(p, Storage::input, "x", DType::f32, kSize),
                      w = add_region_buffer(p, Storage::store, "w", DType::f32, kSize),
                      y = add_region_buffer(p, Storage::output, "y", DType::f32, kSize),
                      squares = add_prepared_buffer(p, "squares", DType::f32, kSize);
  p.inputs.push_back({"x", x, Shape{kSize}, 0});
  p.outputs.push_back({"y", y, Shape{kSize}, 0});
  const Scalar size = Scalar::immediate(kSize);
  p.launches.push_back(launch("prepare", k_square, {{tiles(kSize), {w, squares}, {size}}}));
  p.launches.push_back(launch("square", k_square, {{tiles(kSize), {squares, y}, {size}}}));
  p.launches.push_back(
      launch("add", k_axpy, {{tiles(kSize), {x, y}, {size, Scalar::immediate(1.0F)}}}));
  p.preparation = 1;
  add_dependencies(p);
  return p;
}

std::string message_of(const std::function<void(Plan&)>& spoil) {
  Plan p = prepared_plan();
  spoil(p);
  return tests::message_of<InternalError>([&] { validate(p); });
}

TEST(PlanPreparation, is_accepted_and_comes_back_from_bytes) {
  EXPECT_EQ(message_of([](Plan&) {}), "no error");
  const Plan again = deserialize(serialize(prepared_plan()));
  EXPECT_EQ(again.preparation, 1U);
  EXPECT_EQ(again.buffers, prepared_plan().buffers);
  EXPECT_EQ(prepared_bytes(again), 4 * kSize);
}

TEST(PlanPreparation, depends_on_the_store_alone) {
  EXPECT_THAT(message_of([](Plan& p) { p.launches[0].sets[0].buffers[0] = 0; }),
              HasSubstr("launch 0 'prepare' belongs to the preparation, but reads input 'x'"));
  EXPECT_THAT(message_of([](Plan& p) { p.preparation = 2; }),
              HasSubstr("launch 1 'square' belongs to the preparation, but writes output 'y'"));
  EXPECT_THAT(message_of([](Plan& p) { p.preparation = 4; }),
              HasSubstr("4 of 3 launches are a preparation"));
  EXPECT_THAT(message_of([](Plan& p) {
                p.launches[0].unit = 1;
                p.launches[0].sets[0].params = {Scalar::immediate(kSize), Scalar::uniform(0)};
              }),
              HasSubstr("launch 0 'prepare' belongs to the preparation and has a uniform"));
}

TEST(PlanPreparation, leaves_nothing_in_the_arena_for_others) {
  EXPECT_THAT(message_of([](Plan& p) {
                const std::uint32_t squares = add_arena_buffer(p, "a", DType::f32, kSize);
                p.launches[0].sets[0].buffers[1] = p.launches[1].sets[0].buffers[0] = squares;
                place_arena(p);
              }),
              HasSubstr("launch 1 'square' reads 'a', which only the preparation has written"));
}

TEST(PlanPreparation, is_changed_by_nothing_else) {
  EXPECT_THAT(message_of([](Plan& p) { p.launches[2].sets[0].buffers[1] = 3; }),
              HasSubstr("launch 2 'add' comes behind the preparation, but writes prepared "
                        "'squares'"));
  EXPECT_THAT(message_of([](Plan& p) { p.launches[2].sets[0].buffers[1] = 1; }),
              HasSubstr("launch 2 'add' changes 'w', and there is a preparation"));
}

}  // namespace
}  // namespace pantala::plan
