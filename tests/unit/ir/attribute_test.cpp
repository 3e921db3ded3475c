// Attributes: one declaration gives names, defaults, identity, text and binding by name.
#include "ir/attribute.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ir/op.h"
#include "ops/table.h"
#include "pantala/error.h"
#include "support/errors.h"
#include "support/numbers.h"

namespace pantala::ir {
namespace {

using pantala::tests::message_of;
using tests::message_of;

enum class Colour { red, green };

}  // namespace
template <>
struct EnumNames<Colour> {
  static constexpr std::string_view names[] = {"red", "green"};
};
namespace {

struct Attrs {
  bool flag = true;
  std::int64_t count = 3;
  double rate = 0.5;
  Ints axes = {1, -1};
  DType dtype = bf16;
  Colour colour = Colour::green;
  std::string name;
  static void fields(auto&& f, auto& a) {
    f("flag", a.flag, "a flag");
    f("count", a.count, "a count");
    f("rate", a.rate, "a rate");
    f("axes", a.axes, "some axes");
    f("dtype", a.dtype, "a type");
    f("colour", a.colour, "a choice");
    f("name", a.name, "a name", Field::required);
  }
};

OpDef example() {
  OpDef op;
  op.name = "example";
  op.signature = "(x, bias?) -> (y, mean)";
  op.attrs = specs_of<Attrs>();
  parse_signature(op);
  return op;
}

TEST(Attributes, values_read_back_into_the_struct) {
  Attrs a;
  a.count = -7, a.rate = -0.0, a.colour = Colour::red, a.name = "n";
  const Attrs b = from_values<Attrs>(to_values(a));
  EXPECT_EQ(b.count, -7);
  EXPECT_TRUE(std::signbit(b.rate));
  EXPECT_EQ(b.axes, (Ints{1, -1}));
  EXPECT_EQ(b.dtype, bf16);
  EXPECT_EQ(b.colour, Colour::red);
  EXPECT_EQ(b.name, "n");
}

TEST(Attributes, specs_hold_names_defaults_choices_and_requirement) {
  const std::vector<AttrSpec> specs = specs_of<Attrs>();
  ASSERT_EQ(specs.size(), 7u);
  EXPECT_EQ(specs[2].name, "rate");
  EXPECT_EQ(std::get<double>(specs[2].default_value), 0.5);
  EXPECT_FALSE(specs[2].required);
  EXPECT_EQ(specs[5].choices, (std::vector<std::string>{"red", "green"}));
  EXPECT_EQ(std::get<std::string>(specs[5].default_value), "green");
  EXPECT_TRUE(specs[6].required);
}

TEST(Attributes, texts) {
  EXPECT_EQ(to_text(AttrValue(true)), "true");
  EXPECT_EQ(to_text(AttrValue(std::int64_t{-5})), "-5");
  EXPECT_EQ(to_text(AttrValue(-0.0)), "-0");
  EXPECT_EQ(to_text(AttrValue(std::string("a\"b"))), "\"a\\\"b\"");
  EXPECT_EQ(to_text(AttrValue(Ints{1, -2})), "[1,-2]");
  EXPECT_EQ(to_text(AttrValue(Ints{})), "[]");
  EXPECT_EQ(to_text(AttrValue(boolean)), "bool");
  EXPECT_EQ(to_text(AttrValue(init::uniform(-1, 0.5))), "uniform(-1,0.5)");
  EXPECT_EQ(to_text(AttrValue(init::from_data(Literal::floats({2}, {0.5, -0.0})))),
            "data(f32[2] [0.5,-0])");
  EXPECT_EQ(
      to_text(AttrValue(std::make_shared<const Literal>(Literal::ints({2, 1}, {1, 0}, boolean)))),
      "bool[2,1] [1,0]");
}

TEST(Attributes, doubles_are_compared_by_bits) {
  EXPECT_FALSE(equal_bits(0.0, -0.0));
  EXPECT_NE(hash_of(0.0), hash_of(-0.0));
  EXPECT_TRUE(equal_bits(NAN, NAN));
  EXPECT_TRUE(equal_bits(NAN, -NAN));
  EXPECT_EQ(hash_of(NAN), hash_of(-NAN));
  EXPECT_TRUE(equal_bits(0.1, 0.1));
}

TEST(Attributes, kinds_are_part_of_the_value) {
  EXPECT_FALSE(equal_bits(1.0, std::int64_t{1}));
  EXPECT_FALSE(equal_bits(true, std::int64_t{1}));
  EXPECT_NE(hash_of(true), hash_of(std::int64_t{1}));
}

TEST(Attributes, literals_and_initialisers_are_compared_by_content) {
  const auto literal = [](double x) {
    return AttrValue(std::make_shared<const Literal>(Literal::scalar(x)));
  };
  EXPECT_TRUE(equal_bits(literal(2), literal(2)));
  EXPECT_FALSE(equal_bits(literal(0.0), literal(-0.0)));
  EXPECT_TRUE(equal_bits(init::normal(0, 1), init::normal(0, 1)));
  EXPECT_FALSE(equal_bits(init::normal(0, 1), init::normal(-0.0, 1)));
  EXPECT_TRUE(
      equal_bits(init::from_data(Literal::scalar(NAN)), init::from_data(Literal::scalar(-NAN))));
}

TEST(Signature, gives_inputs_and_results) {
  const OpDef op = example();
  ASSERT_EQ(op.inputs.size(), 2u);
  EXPECT_TRUE(op.inputs[1].optional);
  EXPECT_EQ(op.inputs[1].name, "bias");
  EXPECT_EQ(op.results, (std::vector<std::string>{"y", "mean"}));
  EXPECT_EQ(op.min_inputs(), 1);
  EXPECT_EQ(op.max_inputs(), 2);
  EXPECT_EQ(ops::table().get("concat").max_inputs(), std::nullopt);
  EXPECT_EQ(ops::table().get("input").max_inputs(), 0);
}

TEST(BindAttributes, fills_in_defaults) {
  const AttrValues values =
      bind_attributes(example(), {{"name", std::string("n")}, {"count", std::int64_t{9}}});
  EXPECT_EQ(std::get<std::int64_t>(values[1]), 9);
  EXPECT_EQ(std::get<double>(values[2]), 0.5);
}

TEST(BindAttributes, converts_where_nothing_is_lost) {
  const AttrValues values = bind_attributes(example(), {{"rate", std::int64_t{2}},
                                                        {"axes", std::int64_t{1}},
                                                        {"count", Ints{4}},
                                                        {"name", std::string()}});
  EXPECT_EQ(std::get<double>(values[2]), 2.0);
  EXPECT_EQ(std::get<Ints>(values[3]), Ints{1});
  EXPECT_EQ(std::get<std::int64_t>(values[1]), 4);
}

TEST(BindAttributes, says_what_is_wrong) {
  const auto message = [](const NamedAttrs& given) {
    return message_of<TypeError>([&] { bind_attributes(example(), given); });
  };
  EXPECT_EQ(message({{"nmae", std::string()}}),
            "example has no attribute 'nmae'; did you mean 'name'?");
  EXPECT_EQ(message({}), "attribute name is missing");
  EXPECT_EQ(message({{"name", std::string()}, {"name", std::string()}}),
            "attribute name is given twice");
  EXPECT_EQ(message({{"count", 1.5}}), "attribute count of example must be an integer, got 1.5");
  EXPECT_EQ(message({{"flag", std::int64_t{1}}}),
            "attribute flag of example must be a bool, got 1");
  EXPECT_EQ(message({{"colour", std::string("blue")}}),
            "attribute colour must be one of red, green, got 'blue'");
  EXPECT_EQ(message({{"count", Ints{1, 2}}}),
            "attribute count of example must be an integer, got [1,2]");
}

}  // namespace
}  // namespace pantala::ir
