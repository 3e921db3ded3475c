// Rules that recognise losses.
#include "ops/arithmetic.h"
#include "ops/index.h"
#include "ops/movement.h"
#include "ops/norm.h"
#include "pantala/ops.h"
#include "rewrite/rules/rules.h"

namespace pantala::rewrite {

namespace {

std::int64_t class_axis(Fit& f) { return f.attributes<op::LogSoftmax>("softmax").axis; }

// One class for each row of scores.
bool picks_a_class(Fit& f) {
  const auto axis = static_cast<int>(class_axis(f));
  const Shape &scores = f.type("x").shape, &picked = f.type("i").shape;
  return f.attributes<op::Gather>("pick").axis == axis && picked == scores.with(axis, 1) &&
         f.type().shape == picked.without(axis);
}

}  // namespace

std::vector<Rule> loss_rules() {
  const Pattern scores = named<op::LogSoftmax>("softmax", any("x"));
  const Pattern picked = named<op::Gather>("pick", scores, any("i"));
  return {
      {.name = "cross-entropy",
       .promise = Promise::real,
       .keeps_derivatives = true,
       .left = node<op::Neg>(node<op::Reshape>(picked)),
       .when = picks_a_class,
       .right =
           [](Fit& f) {
             return ops::apply("softmax_cross_entropy",
                               {f["x"], reshape(f["i"], f.type().shape.vec())},
                               {{"axis", class_axis(f)}})[0];
           }},
  };
}

}  // namespace pantala::rewrite
