// Rules about arithmetic.
#include "ops/arithmetic.h"
#include "ops/movement.h"
#include "pantala/ops.h"
#include "rewrite/rules/rules.h"

namespace pantala::rewrite {

namespace {

// The left side is the variable x.
Rule identity(std::string name, Promise promise, Pattern left) {
  return {.name = std::move(name),
          .promise = promise,
          .keeps_derivatives = true,
          .left = std::move(left),
          .right = [](Fit& f) { return f["x"]; }};
}

}  // namespace

std::vector<Rule> algebra_rules() {
  const Pattern x = any("x"), s = any("s");
  return {
      identity("add-negative-zero", Promise::bits, node<op::Add>(x, number(-0.0))),
      identity("add-zero", Promise::zero_sign, node<op::Add>(x, number(0))),
      identity("subtract-zero", Promise::bits, node<op::Sub>(x, number(0))),
      identity("multiply-by-one", Promise::bits, node<op::Mul>(x, number(1))),
      identity("one-times", Promise::bits, node<op::Mul>(number(1), x)),
      identity("divide-by-one", Promise::bits, node<op::Div>(x, number(1))),
      identity("negate-twice", Promise::bits, node<op::Neg>(node<op::Neg>(x))),
      // The host computes the reciprocal once a step, in double.
      {.name = "divide-by-host-number",
       .promise = Promise::real,
       .left = node<op::Div>(x, node<op::BroadcastTo>(s)),
       .when = {{"reciprocals of the type are not out of range",
                 [](Fit& f) { return f.type().dtype == f32 || f.type().dtype == f64; }}},
       .worth = [](Fit& f) { return f.is_host("s"); },
       .right = [](Fit& f) { return f["x"] * broadcast_to(1 / f["s"], f.type().shape); }},
  };
}

}  // namespace pantala::rewrite
