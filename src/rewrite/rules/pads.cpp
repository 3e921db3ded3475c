// Rules about sums of pads, which are what gradients of slices are.
#include <algorithm>
#include <optional>

#include "ops/arithmetic.h"
#include "ops/slicing.h"
#include "pantala/ops.h"
#include "rewrite/rules/rules.h"

namespace pantala::rewrite {

namespace {

// What is not zero of a pad along one axis.
struct Stretch {
  ClassId of;
  int axis = 0;
  std::int64_t begin = 0, end = 0;
};

// Of a tensor that zeros were put around, along one axis alone.
std::optional<Stretch> stretch_of(Fit& f, ClassId id) {
  const std::optional<NodeId> node = f.maker<op::Pad>(id);
  if (!node) return std::nullopt;
  const Joint& joint = f.joint();
  const auto pad = ir::from_values<op::Pad::Attrs>(joint.attrs(*node));
  const ClassId padded = joint.equal().find(joint.equal().child(*node, 0));
  const Shape& shape = joint.type(padded).shape;
  std::optional<Stretch> stretch;
  for (int k = 0; k < shape.rank(); ++k) {
    const auto axis = static_cast<std::size_t>(k);
    if (!pad.interior.empty() && pad.interior[axis] != 0) return std::nullopt;
    if (pad.before[axis] == 0 && pad.after[axis] == 0) continue;
    if (stretch || pad.before[axis] < 0 || pad.after[axis] < 0) return std::nullopt;
    stretch = {padded, k, pad.before[axis], pad.before[axis] + shape[k]};
  }
  return pad.value == 0 ? stretch : std::nullopt;
}

// The terms of a sum: pads of which no two have an element that is not zero in common, in the order
// of their elements, and at most one other.
struct Terms {
  std::vector<Stretch> pads;
  std::optional<ClassId> other;
};
std::optional<Terms> terms_of(Fit& f) {
  Terms terms;
  for (const ClassId operand : f.operands("sum")) {
    if (const auto stretch = stretch_of(f, operand))
      terms.pads.push_back(*stretch);
    else if (terms.other)
      return std::nullopt;
    else
      terms.other = operand;
  }
  std::ranges::stable_sort(terms.pads, {}, &Stretch::begin);
  for (std::size_t k = 1; k < terms.pads.size(); ++k) {
    const Stretch &before = terms.pads[k - 1], &pad = terms.pads[k];
    if (pad.axis != before.axis || pad.begin < before.end) return std::nullopt;
  }
  return terms.pads.size() > 1 ? std::optional(terms) : std::nullopt;
}

Tensor joined(Fit& f, const std::vector<Stretch>& pads) {
  const int axis = pads[0].axis;
  const Type& type = f.type();
  std::vector<Tensor> parts;
  std::int64_t at = 0;
  const auto fill_up_to = [&](std::int64_t begin) {
    if (begin > at)
      parts.push_back(f.joint().constant(0, {type.dtype, type.shape.with(axis, begin - at)}));
  };
  for (const Stretch& pad : pads) {
    fill_up_to(pad.begin);
    parts.push_back(f.joint().tensor(pad.of));
    at = pad.end;
  }
  fill_up_to(type.shape[axis]);
  return concat(parts, axis);
}

}  // namespace

std::vector<Rule> pad_rules() {
  return {
      // Where one of them is not zero, the others are.
      {.name = "sum-of-disjoint-pads",
       .promise = Promise::zero_sign,
       .left = with_any_operands<op::AddN>("sum"),
       .when = [](Fit& f) { return terms_of(f).has_value(); },
       .right =
           [](Fit& f) {
             const Terms terms = terms_of(f).value();
             const Tensor all = joined(f, terms.pads);
             return terms.other ? add_n({all, f.joint().tensor(*terms.other)}) : all;
           }},
  };
}

}  // namespace pantala::rewrite
