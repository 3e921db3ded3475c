// Rules about arithmetic.
#include "ops/arithmetic.h"
#include "ops/movement.h"
#include "pantala/ops.h"
#include "rewrite/rules/rules.h"

namespace pantala::rewrite {

std::vector<Rule> algebra_rules() {
  const Pattern x = any("x"), y = any("y"), s = any("s");
  return {
      {.name = "add-negative-zero",
       .promise = Promise::bits,
       .keeps_derivatives = true,
       .left = node<op::Add>(x, number(-0.0)),
       .right = [](Fit& f) { return f["x"]; }},
      {.name = "add-zero",
       .promise = Promise::zero_sign,
       .keeps_derivatives = true,
       .left = node<op::Add>(x, number(0)),
       .right = [](Fit& f) { return f["x"]; }},
      {.name = "subtract-zero",
       .promise = Promise::bits,
       .keeps_derivatives = true,
       .left = node<op::Sub>(x, number(0)),
       .right = [](Fit& f) { return f["x"]; }},
      {.name = "multiply-by-one",
       .promise = Promise::bits,
       .keeps_derivatives = true,
       .left = node<op::Mul>(x, number(1)),
       .right = [](Fit& f) { return f["x"]; }},
      {.name = "one-times",
       .promise = Promise::bits,
       .keeps_derivatives = true,
       .left = node<op::Mul>(number(1), x),
       .right = [](Fit& f) { return f["x"]; }},
      {.name = "divide-by-one",
       .promise = Promise::bits,
       .keeps_derivatives = true,
       .left = node<op::Div>(x, number(1)),
       .right = [](Fit& f) { return f["x"]; }},
      {.name = "negate-twice",
       .promise = Promise::bits,
       .keeps_derivatives = true,
       .left = node<op::Neg>(node<op::Neg>(x)),
       .right = [](Fit& f) { return f["x"]; }},
      // The host computes the reciprocal once a step, in double.
      {.name = "divide-by-host-number",
       .promise = Promise::real,
       .left = node<op::Div>(x, node<op::BroadcastTo>(s)),
       .worth = [](Fit& f) { return f.is_host("s"); },
       .right = [](Fit& f) { return f["x"] * broadcast_to(1 / f["s"], f.type().shape); }},
  };
}

}  // namespace pantala::rewrite
