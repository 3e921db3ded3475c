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
    if (stretch) return std::nullopt;
    stretch = {padded, k, pad.before[axis], pad.before[axis] + shape[k]};
  }
  return pad.value == 0 ? stretch : std::nullopt;
}

// The terms of a sum: pads in the order of their elements, and others.
struct Terms {
  std::vector<Stretch> pads;
  std::vector<ClassId> others;
};
Terms terms_of(Fit& f) {
  Terms terms;
  for (const ClassId operand : f.operands("sum")) {
    if (const auto stretch = stretch_of(f, operand))
      terms.pads.push_back(*stretch);
    else
      terms.others.push_back(operand);
  }
  std::ranges::stable_sort(terms.pads, {}, &Stretch::begin);
  return terms;
}

bool has_one_axis(Fit& f) {
  const Terms terms = terms_of(f);
  return std::ranges::all_of(terms.pads,
                             [&](const Stretch& pad) { return pad.axis == terms.pads[0].axis; });
}
bool has_no_overlap(Fit& f) {
  const Terms terms = terms_of(f);
  return std::ranges::adjacent_find(terms.pads, [](const Stretch& before, const Stretch& pad) {
           return pad.axis == before.axis && pad.begin < before.end;
         }) == terms.pads.end();
}
// The order in which others are added stays what it was.
bool has_one_other(Fit& f) { return terms_of(f).others.size() <= 1; }
bool has_several_pads(Fit& f) { return terms_of(f).pads.size() > 1; }

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
       .when = {{"along one axis", has_one_axis},
                {"no two overlap", has_no_overlap},
                {"one other term at most", has_one_other}},
       .worth = has_several_pads,
       .right =
           [](Fit& f) {
             const Terms terms = terms_of(f);
             std::vector<Tensor> sum;
             if (!terms.pads.empty()) sum.push_back(joined(f, terms.pads));
             for (const ClassId other : terms.others) sum.push_back(f.joint().tensor(other));
             return sum.size() == 1 ? sum[0] : add_n(sum);
           }},
  };
}

}  // namespace pantala::rewrite
