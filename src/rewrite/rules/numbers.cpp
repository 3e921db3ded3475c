// Rules about constants of one number: how a graph says them, where a factor stands, and powers.
// Those that move a factor make nothing shorter; they bring it to where others look for it.
#include "ir/leaves.h"
#include "ops/arithmetic.h"
#include "ops/slicing.h"
#include "pantala/ops.h"
#include "rewrite/rules/rules.h"

namespace pantala::rewrite {

namespace {

const Pattern x = any("x"), y = any("y"), c = any("c");

// In the type of the left side.
bool has_ordinary_reciprocal(Fit& f) {
  return !f.is_number("c") || is_ordinary(1 / f.number("c"), f.type().dtype);
}
bool has_ordinary_product(Fit& f) {
  return !f.is_number("a") || !f.is_number("c") ||
         is_ordinary(f.number("a") * f.number("c"), f.type().dtype);
}

// Something that only moves elements, of a number.
Rule number_of(std::string name, Pattern left) {
  return {.name = std::move(name),
          .promise = Promise::bits,
          .keeps_derivatives = true,
          .left = std::move(left),
          .when = {is_number("x")},
          .right = [](Fit& f) { return f.filled(f.number("x")); }};
}

Rule power(std::string name, double exponent, Tensor (*function)(const Tensor&)) {
  return {.name = std::move(name),
          .promise = Promise::real,
          .keeps_derivatives = true,
          .left = named<op::PowScalar>("power", x),
          .when = {{"this power",
                    [exponent](Fit& f) {
                      return f.attributes<op::PowScalar>("power").exponent == exponent;
                    }}},
          .right = [function](Fit& f) { return function(f["x"]); }};
}

std::vector<Rule> constants() {
  return {
      {.name = "number-of-data",
       .promise = Promise::bits,
       .keeps_derivatives = true,
       .left = named<op::Data>("data"),
       .when = {{"all numbers are the same",
                 [](Fit& f) { return f.joint().splat(f.left()).has_value(); }}},
       .right = [](Fit& f) { return f.filled(f.attributes<op::Data>("data").values->at(0)); }},
      number_of("number-of-broadcast", node<op::BroadcastTo>(x)),
      number_of("number-of-reshape", node<op::Reshape>(x)),
      number_of("number-of-permute", node<op::Permute>(x)),
      number_of("number-of-slice", node<op::Slice>(x)),
  };
}

std::vector<Rule> factors() {
  const auto is_only_number = [](Fit& f) { return f.is_number("c") && !f.is_number("x"); };
  return {
      {.name = "number-plus",
       .promise = Promise::bits,
       .keeps_derivatives = true,
       .left = node<op::Add>(c, x),
       .worth = is_only_number,
       .right = [](Fit& f) { return f["x"] + f["c"]; }},
      {.name = "number-times",
       .promise = Promise::bits,
       .keeps_derivatives = true,
       .left = node<op::Mul>(c, x),
       .worth = is_only_number,
       .right = [](Fit& f) { return f["x"] * f["c"]; }},
      {.name = "divide-by-number",
       .promise = Promise::real,
       .keeps_derivatives = true,
       .left = node<op::Div>(x, c),
       .when = {is_number("c"), {"the reciprocal is ordinary", has_ordinary_reciprocal}},
       .right = [](Fit& f) { return f["x"] * f.filled(1 / f.number("c")); }},
      {.name = "scale-of-scaled",
       .promise = Promise::real,
       .keeps_derivatives = true,
       .left = node<op::Mul>(node<op::Mul>(x, any("a")), c),
       .when = {is_number("a"), is_number("c"), {"the product is ordinary", has_ordinary_product}},
       .right = [](Fit& f) { return f["x"] * f.filled(f.number("a") * f.number("c")); }},
      {.name = "reshape-of-scaled",
       .promise = Promise::bits,
       .keeps_derivatives = true,
       .left = node<op::Reshape>(node<op::Mul>(x, c)),
       .when = {is_number("c")},
       .right =
           [](Fit& f) { return reshape(f["x"], f.type().shape.vec()) * f.filled(f.number("c")); }},
      {.name = "permute-of-scaled",
       .promise = Promise::bits,
       .keeps_derivatives = true,
       .left = named<op::Permute>("permute", node<op::Mul>(x, c)),
       .when = {is_number("c")},
       .right =
           [](Fit& f) {
             return permute(f["x"], f.attributes<op::Permute>("permute").axes) *
                    f.filled(f.number("c"));
           }},
  };
}

std::vector<Rule> powers() {
  return {
      {.name = "square",
       .promise = Promise::bits,
       .keeps_derivatives = true,
       .left = node<op::Mul>(x, x),
       .when = {{"of floats", [](Fit& f) { return is_float(f.type().dtype); }}},
       .right = [](Fit& f) { return square(f["x"]); }},
      power("power-two", 2, [](const Tensor& t) { return square(t); }),
      power("power-three", 3, [](const Tensor& t) { return t * t * t; }),
      power("power-half", 0.5, [](const Tensor& t) { return sqrt(t); }),
      power("power-minus-half", -0.5, [](const Tensor& t) { return rsqrt(t); }),
      {.name = "one-over",
       .promise = Promise::bits,
       .keeps_derivatives = true,
       .left = node<op::Div>(number(1), x),
       .right = [](Fit& f) { return reciprocal(f["x"]); }},
      {.name = "one-over-root",
       .promise = Promise::real,
       .keeps_derivatives = true,
       .left = node<op::Reciprocal>(node<op::Sqrt>(x)),
       .right = [](Fit& f) { return rsqrt(f["x"]); }},
      {.name = "divide-by-root",
       .promise = Promise::real,
       .keeps_derivatives = true,
       .left = node<op::Div>(y, node<op::BroadcastTo>(node<op::Sqrt>(x))),
       .right = [](Fit& f) { return f["y"] * broadcast_to(rsqrt(f["x"]), f.type().shape); }},
  };
}

}  // namespace

std::vector<Rule> number_rules() {
  std::vector<Rule> all = constants();
  for (std::vector<Rule> part : {factors(), powers()})
    for (Rule& rule : part) all.push_back(std::move(rule));
  return all;
}

}  // namespace pantala::rewrite
