// Shapes: limits are checked on construction, so that nothing later can overflow.
#include "pantala/shape.h"

#include <gtest/gtest.h>

#include "pantala/error.h"
#include "support/errors.h"
#include "support/numbers.h"

namespace pantala {
namespace {

using tests::message_of;

TEST(Shape, scalar_has_one_element_and_an_empty_axis_none) {
  EXPECT_EQ(Shape{}.numel(), 1);
  EXPECT_EQ(Shape{}.rank(), 0);
  EXPECT_EQ((Shape{3, 0, 2}).numel(), 0);
  EXPECT_EQ((Shape{2, 3, 4}).numel(), 24);
}

TEST(Shape, text) {
  EXPECT_EQ(Shape{}.str(), "[]");
  EXPECT_EQ((Shape{2, 3}).str(), "[2,3]");
  EXPECT_EQ((Type{bf16, {2, 3}}).str(), "bf16[2,3]");
  EXPECT_EQ((Type{boolean, {}}).str(), "bool[]");
}

TEST(Shape, strides_are_row_major) {
  EXPECT_EQ((Shape{2, 3, 4}).strides(), (std::vector<std::int64_t>{12, 4, 1}));
  EXPECT_EQ((Shape{2, 0, 4}).strides(), (std::vector<std::int64_t>{0, 4, 1}));
  EXPECT_TRUE(Shape{}.strides().empty());
}

TEST(Shape, edits_give_new_shapes) {
  const Shape s{2, 3, 4};
  EXPECT_EQ(s.with(1, 7), (Shape{2, 7, 4}));
  EXPECT_EQ(s.without(0), (Shape{3, 4}));
  EXPECT_EQ(s.insert(3, 5), (Shape{2, 3, 4, 5}));
  EXPECT_EQ(s, (Shape{2, 3, 4}));
  EXPECT_FALSE((Shape{2, 3}) == (Shape{2, 3, 1}));
}

TEST(Shape, has_at_most_8_axes) {
  EXPECT_EQ((Shape{1, 1, 1, 1, 1, 1, 1, 1}).rank(), 8);
  EXPECT_EQ(message_of<TypeError>([] { Shape{1, 1, 1, 1, 1, 1, 1, 1, 1}; }),
            "a shape has at most 8 axes, got 9");
  EXPECT_THROW((Shape{1, 1, 1, 1, 1, 1, 1, 1}).insert(0, 1), TypeError);
}

TEST(Shape, has_no_negative_sizes) {
  EXPECT_EQ(message_of<TypeError>([] { Shape{2, -1}; }), "a size cannot be negative: [2,-1]");
}

TEST(Shape, product_is_at_most_2_to_the_60) {
  constexpr std::int64_t k30 = std::int64_t{1} << 30;
  EXPECT_EQ((Shape{k30, k30}).numel(), std::int64_t{1} << 60);
  EXPECT_EQ(message_of<TypeError>([] { Shape{k30, k30, 2}; }),
            "too many elements: [1073741824,1073741824,2]");
  EXPECT_THROW((Shape{INT64_MAX}), TypeError);
  EXPECT_THROW((Shape{INT64_MAX, INT64_MAX, INT64_MAX}), TypeError);
}

TEST(Shape, a_zero_hides_no_overflow) {
  constexpr std::int64_t k40 = std::int64_t{1} << 40;
  EXPECT_THROW((Shape{k40, 0, k40}), TypeError);
  EXPECT_THROW((Shape{0, k40, k40}), TypeError);
}

struct BroadcastCase {
  Shape a, b, result;
};
TEST(Broadcast, is_right_aligned_and_symmetric) {
  const BroadcastCase cases[] = {
      {{}, {2, 3}, {2, 3}}, {{3}, {2, 3}, {2, 3}},    {{2, 1}, {1, 3}, {2, 3}},
      {{1}, {0}, {0}},      {{0, 1}, {1, 4}, {0, 4}}, {{5, 1, 3}, {4, 1}, {5, 4, 3}},
      {{}, {}, {}},         {{2, 3}, {2, 3}, {2, 3}}};
  for (const BroadcastCase& c : cases) {
    Shape result;
    EXPECT_TRUE(broadcast_shapes(c.a, c.b, result));
    EXPECT_EQ(result, c.result) << c.a.str() << c.b.str();
    EXPECT_TRUE(broadcast_shapes(c.b, c.a, result));
    EXPECT_EQ(result, c.result);
  }
}

TEST(Broadcast, refuses_what_does_not_fit) {
  Shape result{9};
  EXPECT_FALSE(broadcast_shapes({2}, {3}, result));
  EXPECT_FALSE(broadcast_shapes({0}, {2}, result));
  EXPECT_FALSE(broadcast_shapes({2, 3}, {2}, result));
  EXPECT_EQ(result, (Shape{9}));  // untouched
}

TEST(Broadcast, of_two_valid_shapes_can_be_too_large) {
  constexpr std::int64_t k40 = std::int64_t{1} << 40;
  Shape result;
  EXPECT_THROW(broadcast_shapes({k40, 1}, {1, k40}, result), TypeError);
}

}  // namespace
}  // namespace pantala
