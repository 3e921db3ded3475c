// Rules that recognise softmax and its logarithm. What is subtracted along the axis, which is most
// often the largest element, changes neither.
#include "ops/arithmetic.h"
#include "ops/movement.h"
#include "ops/norm.h"
#include "ops/reduce.h"
#include "pantala/ops.h"
#include "rewrite/rules/rules.h"

namespace pantala::rewrite {

namespace {

const Pattern x = any("x"), m = any("m");

Rule row(std::string name, Pattern left, std::vector<Condition> when,
         std::function<Tensor(Fit&)> right) {
  return canonical_rule(std::move(name), Promise::real, std::move(left), std::move(when),
                        std::move(right));
}

// The right side takes the largest element off first.
Rule safer(Rule rule) {
  rule.stays_finite = true;
  return rule;
}

bool sums_one_axis(Fit& f) { return f.attributes<op::Sum>("sum").axes.size() == 1; }
bool keeps_axes(Fit& f) { return f.attributes<op::Sum>("sum").keepdims; }
std::int64_t summed_axis(Fit& f) { return f.attributes<op::Sum>("sum").axes.at(0); }

std::int64_t softmax_axis(Fit& f) { return f.attributes<op::Softmax>("softmax").axis; }

// What is subtracted is the same for all that share a sum.
bool is_shift(Fit& f) {
  const Shape &shift = f.type("m").shape, &all = f.type("x").shape;
  const auto axis = static_cast<int>(softmax_axis(f)) - (all.rank() - shift.rank());
  return axis < 0 || shift[axis] == 1;
}

}  // namespace

std::vector<Rule> softmax_rules() {
  const std::vector<Condition> sums_rows = {{"sums one axis", sums_one_axis},
                                            {"keeps the axis", keeps_axes}};
  const std::vector<Condition> shifts = {{"the same is subtracted along the axis", is_shift}};
  const Pattern e = node<op::Exp>(x), total = named<op::Sum>("sum", e),
                shifted = node<op::Sub>(x, node<op::BroadcastTo>(m));
  return {
      safer(row("softmax", node<op::Div>(e, node<op::BroadcastTo>(total)), sums_rows,
                [](Fit& f) { return softmax(f["x"], summed_axis(f)); })),
      row("softmax-of-shifted", named<op::Softmax>("softmax", shifted), shifts,
          [](Fit& f) { return softmax(f["x"], softmax_axis(f)); }),
      safer(row("log-softmax", node<op::Sub>(x, node<op::BroadcastTo>(node<op::Log>(total))),
                sums_rows, [](Fit& f) { return log_softmax(f["x"], summed_axis(f)); })),
      row("log-softmax-of-shifted", named<op::LogSoftmax>("softmax", shifted), shifts,
          [](Fit& f) { return log_softmax(f["x"], softmax_axis(f)); }),
      safer(row("log-of-softmax", node<op::Log>(named<op::Softmax>("softmax", x)), {},
                [](Fit& f) { return log_softmax(f["x"], softmax_axis(f)); })),
  };
}

}  // namespace pantala::rewrite
