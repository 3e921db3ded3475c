// Literals: what they hold, how they compare.
#include "pantala/literal.h"

#include <gtest/gtest.h>

#include <cmath>

#include "pantala/error.h"
#include "support/errors.h"
#include "support/numbers.h"

namespace pantala {
namespace {

using tests::message_of;

TEST(Literal, starts_with_zeros) {
  const Literal f(Type{f32, {2, 3}}), i(Type{u8, {0}});
  EXPECT_EQ(f.to_doubles(), std::vector<double>(6, 0.0));
  EXPECT_EQ(i.numel(), 0);
  EXPECT_EQ(Literal().type(), (Type{f32, {}}));
}

TEST(Literal, counts_must_fit) {
  EXPECT_EQ(message_of<TypeError>([] { Literal::floats({2, 2}, {1, 2, 3}); }),
            "3 values given for shape [2,2], which has 4");
  EXPECT_EQ(message_of<TypeError>([] { Literal::ints({}, {}); }),
            "0 values given for shape [], which has 1");
}

TEST(Literal, dtypes_must_fit) {
  EXPECT_EQ(message_of<TypeError>([] { Literal::floats({1}, {1.5}, i32); }),
            "i32 cannot hold floats");
  EXPECT_EQ(message_of<TypeError>([] { Literal::ints({1}, {1}, f16); }),
            "f16 cannot hold integers");
}

TEST(Literal, integers_wrap_to_their_type) {
  EXPECT_EQ(Literal::ints({3}, {256, -1, 7}, u8).to_doubles(), (std::vector<double>{0, 255, 7}));
  EXPECT_EQ(Literal::ints({2}, {5, 0}, boolean).to_doubles(), (std::vector<double>{1, 0}));
}

TEST(Literal, floats_of_any_dtype_are_held_in_double) {
  EXPECT_EQ(Literal::floats({1}, {0.1}, f16).f()[0], 0.1);
}

TEST(Literal, says_how_to_read_it_when_it_is_asked_for_the_other_kind) {
  Literal f(Type{f32, {2}}), i(Type{i64, {}});
  const std::string of_floats =
      "a literal of type f32[2] holds floats: read it with f(), or any literal with to_doubles()";
  const std::string of_integers =
      "a literal of type i64[] holds integers: read it with i(), or any literal with to_doubles()";
  EXPECT_EQ(message_of<TypeError>([&] { f.i(); }), of_floats);
  EXPECT_EQ(message_of<TypeError>([&] { std::as_const(f).i(); }), of_floats);
  EXPECT_EQ(message_of<TypeError>([] { Literal(Type{f32, {2}}).i(); }), of_floats);
  EXPECT_EQ(message_of<TypeError>([&] { i.f(); }), of_integers);
  EXPECT_EQ(message_of<TypeError>([&] { std::as_const(i).f(); }), of_integers);
  EXPECT_EQ(message_of<TypeError>([] { Literal(Type{i64, {}}).f(); }), of_integers);
}

// A view of a temporary would be one of freed memory.
TEST(Literal, a_temporary_gives_its_elements_away) {
  static_assert(std::is_same_v<decltype(std::declval<Literal>().f()), std::vector<double>>);
  static_assert(std::is_same_v<decltype(std::declval<Literal>().i()), std::vector<std::int64_t>>);
  static_assert(
      std::is_same_v<decltype(std::declval<const Literal&>().f()), std::span<const double>>);
  static_assert(std::is_same_v<decltype(std::declval<Literal&>().f()), std::span<double>>);
  static_assert(std::is_same_v<decltype(std::declval<Literal>().shape()), Shape>);
  static_assert(std::is_same_v<decltype(std::declval<const Literal>().type()), Type>);
  static_assert(std::is_same_v<decltype(std::declval<Literal&>().shape()), const Shape&>);
  static_assert(std::is_same_v<decltype(std::declval<const Literal&>().type()), const Type&>);
  const auto makes = [] { return Literal::floats({1000}, std::vector<double>(1000, 2.5)); };
  double sum = 0;
  for (const double v : makes().f()) sum += v;
  EXPECT_EQ(sum, 2500);
  std::int64_t count = 0;
  for (const std::int64_t v : Literal::ints({3}, {1, 2, 3}).i()) count += v;
  EXPECT_EQ(count, 6);
  std::int64_t sizes = 0;
  for (const std::int64_t size : makes().shape()) sizes += size;
  EXPECT_EQ(sizes, 1000);
}

TEST(Literal, an_element_that_is_not_there_is_an_error) {
  const Literal x = Literal::floats({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(x.at(5), 6);
  EXPECT_EQ(message_of<ValueError>([&] { x.at(6); }),
            "there is no element 6 of a literal of type f32[2,3], which has 6");
  EXPECT_EQ(message_of<ValueError>([&] { x.at(-1); }),
            "there is no element -1 of a literal of type f32[2,3], which has 6");
  EXPECT_THROW(Literal(Type{i32, {0}}).at(0), ValueError);
}

TEST(Literal, is_refused_where_no_host_has_the_memory) {
  EXPECT_EQ(message_of<TypeError>([] { Literal(Type{f32, {1 << 20, 1 << 20}}); }),
            "a host tensor of type f32[1048576,1048576] is too large for the memory");
}

TEST(Literal, compares_by_type_and_bits) {
  EXPECT_EQ(Literal::floats({2}, {1, 2}), Literal::floats({2}, {1, 2}));
  EXPECT_FALSE(Literal::floats({2}, {1, 2}) == Literal::floats({2, 1}, {1, 2}));
  EXPECT_FALSE(Literal::floats({1}, {1}, f32) == Literal::floats({1}, {1}, f64));
  EXPECT_FALSE(Literal::scalar(0.0) == Literal::scalar(-0.0));
  EXPECT_EQ(Literal::scalar(NAN), Literal::scalar(-NAN));
  EXPECT_NE(Literal::scalar(0.0).hash(), Literal::scalar(-0.0).hash());
  EXPECT_EQ(Literal::scalar(NAN).hash(), Literal::scalar(-NAN).hash());
  EXPECT_NE(Literal::floats({2}, {1, 2}).hash(), Literal::floats({1, 2}, {1, 2}).hash());
}

TEST(Literal, reshapes_without_moving) {
  const Literal x = Literal::floats({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(x.reshaped({3, 2}), Literal::floats({3, 2}, {1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(message_of<TypeError>([&] { x.reshaped({4}); }),
            "a literal of type f32[2,3] cannot become [4]: 6 elements are not 4");
}

}  // namespace
}  // namespace pantala
