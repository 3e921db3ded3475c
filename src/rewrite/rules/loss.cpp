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

bool picks_along_classes(Fit& f) { return f.attributes<op::Gather>("pick").axis == class_axis(f); }
bool picks_one_per_row(Fit& f) {
  return f.type("i").shape == f.type("x").shape.with(static_cast<int>(class_axis(f)), 1);
}
bool gives_rows(Fit& f) {
  return f.type().shape == f.type("i").shape.without(static_cast<int>(class_axis(f)));
}
bool has_classes(Fit& f) { return f.type("x").shape[static_cast<int>(class_axis(f))] > 0; }

// No row is to be left out, and this is the class that is asked for least.
constexpr std::int64_t kNoClass = -(std::int64_t{1} << 53);

}  // namespace

std::vector<Rule> loss_rules() {
  const Pattern scores = named<op::LogSoftmax>("softmax", any("x"));
  const Pattern picked = named<op::Gather>("pick", scores, any("i"));
  return {
      {.name = "cross-entropy",
       .promise = Promise::real,
       .keeps_derivatives = true,
       .left = node<op::Neg>(node<op::Reshape>(picked)),
       .when = {{"picks along the classes", picks_along_classes},
                {"picks one per row", picks_one_per_row},
                {"gives rows", gives_rows},
                {"there are classes", has_classes}},
       .right =
           [](Fit& f) {
             return ops::apply("softmax_cross_entropy",
                               {f["x"], reshape(f["i"], f.type().shape.vec())},
                               {{"axis", class_axis(f)}, {"ignore_index", kNoClass}})[0];
           }},
  };
}

}  // namespace pantala::rewrite
