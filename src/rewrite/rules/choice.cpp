// Rules about `where`.
#include "ops/arithmetic.h"
#include "pantala/ops.h"
#include "rewrite/rules/rules.h"

namespace pantala::rewrite {

std::vector<Rule> choice_rules() {
  const Pattern c = any("c"), x = any("x"), k = any("k");
  return {
      // What is chosen is a number instead of a tensor, and x is read once.
      {.name = "choice-of-difference",
       .promise = Promise::bits,
       .left = node<op::Where>(c, node<op::Sub>(x, k), x),
       .right = [](Fit& f) { return f["x"] - where(f["c"], f["k"], 0); }},
      {.name = "choice-of-same",
       .promise = Promise::bits,
       .left = node<op::Where>(c, x, x),
       .right = [](Fit& f) { return f["x"]; }},
  };
}

}  // namespace pantala::rewrite
