// Rules about what only moves elements: two moves are one, and a move to the same place is none.
#include "ops/movement.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "ir/leaves.h"
#include "ops/arithmetic.h"
#include "ops/index.h"
#include "ops/slicing.h"
#include "pantala/ops.h"
#include "rewrite/rules/rules.h"

namespace pantala::rewrite {

namespace {

const Pattern x = any("x");

// A row that keeps bits and derivatives, as all that only move elements do.
Rule move(std::string name, Pattern left, std::vector<Condition> when,
          std::function<Tensor(Fit&)> right) {
  return canonical_rule(std::move(name), Promise::bits, std::move(left), std::move(when),
                        std::move(right));
}

const Condition has_same_type = {"x has the type already",
                                 [](Fit& f) { return f.type() == f.type("x"); }};
Tensor x_itself(Fit& f) { return f["x"]; }

ir::Ints axes_of(Fit& f, std::string_view permute) {
  return f.attributes<op::Permute>(permute).axes;
}

bool keeps_places(Fit& f) { return std::ranges::is_sorted(axes_of(f, "permute")); }
// Nothing moves in memory.
bool keeps_order(Fit& f) {
  std::int64_t last = -1;
  for (const std::int64_t axis : axes_of(f, "permute")) {
    if (f.type("x").shape[static_cast<int>(axis)] == 1) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

ir::Ints composed(const ir::Ints& inner, const ir::Ints& outer) {
  ir::Ints axes;
  for (const std::int64_t axis : outer) axes.push_back(inner[static_cast<std::size_t>(axis)]);
  return axes;
}

// Which axes of `shape` each axis of `merged` was made of, in order; none where axes were cut.
std::optional<std::vector<ir::Ints>> groups_of(const Shape& shape, const Shape& merged) {
  std::vector<ir::Ints> groups;
  int at = 0;
  for (const std::int64_t size : merged) {
    ir::Ints group;
    std::int64_t product = 1;
    while (at < shape.rank() && (product < size || group.empty())) {
      group.push_back(at);
      product *= shape[at++];
    }
    if (product != size) return std::nullopt;
    groups.push_back(std::move(group));
  }
  for (; at < shape.rank(); ++at) {
    if (shape[at] != 1 || groups.empty()) return std::nullopt;
    groups.back().push_back(at);
  }
  return groups;
}

// The axes of x in the order in which a permutation of merged axes puts them; none where axes are
// not merged as a whole.
std::optional<ir::Ints> unmerged_axes(Fit& f) {
  const auto groups = groups_of(f.type("x").shape, f.type("merged").shape);
  if (!groups) return std::nullopt;
  ir::Ints axes;
  for (const std::int64_t axis : axes_of(f, "permute"))
    for (const std::int64_t part : (*groups)[static_cast<std::size_t>(axis)]) axes.push_back(part);
  return axes;
}
bool merges_axes(Fit& f) { return unmerged_axes(f).has_value(); }
bool parts_them_again(Fit& f) {
  const auto axes = unmerged_axes(f);
  if (!axes) return true;
  ir::Ints sizes;
  for (const std::int64_t axis : *axes) sizes.push_back(f.type("x").shape[static_cast<int>(axis)]);
  return sizes == f.type().shape.vec();
}

// A permutation whose axes a reshape takes apart, as a permutation of the parts: their sizes in the
// order of x, and the order that they are put into.
struct Parted {
  ir::Ints sizes, axes;
};
std::optional<Parted> parted(Fit& f) {
  const Shape& to = f.type().shape;
  const auto groups = groups_of(to, f.type("permute").shape);
  if (!groups) return std::nullopt;
  const ir::Ints order = axes_of(f, "permute");
  Parted result{{}, ir::Ints(static_cast<std::size_t>(to.rank()))};
  for (std::size_t axis = 0; axis < order.size(); ++axis) {
    const auto at = std::ranges::find(order, static_cast<std::int64_t>(axis)) - order.begin();
    for (const std::int64_t part : (*groups)[static_cast<std::size_t>(at)]) {
      result.axes[static_cast<std::size_t>(part)] = std::ssize(result.sizes);
      result.sizes.push_back(to[static_cast<int>(part)]);
    }
  }
  return result;
}
Tensor permuted_parts(Fit& f) {
  const Parted parts = parted(f).value();
  return permute(reshape(f["x"], parts.sizes), parts.axes);
}

std::vector<Rule> reshapes() {
  return {
      move("reshape-to-same", node<op::Reshape>(x), {has_same_type}, x_itself),
      move("reshape-of-reshape", node<op::Reshape>(node<op::Reshape>(x)), {},
           [](Fit& f) { return reshape(f["x"], f.type().shape.vec()); }),
      move("permute-to-same", named<op::Permute>("permute", x),
           {{"axes keep their places", keeps_places}}, x_itself),
      move("permute-of-permute", named<op::Permute>("outer", named<op::Permute>("inner", x)), {},
           [](Fit& f) {
             return permute(f["x"], composed(axes_of(f, "inner"), axes_of(f, "outer")));
           }),
      move("permute-of-ones", named<op::Permute>("permute", x),
           {{"axes longer than 1 keep their order", keeps_order}},
           [](Fit& f) { return reshape(f["x"], f.type().shape.vec()); }),
      move("permute-of-merged-axes",
           node<op::Reshape>(named<op::Permute>("permute", named<op::Reshape>("merged", x))),
           {{"axes are merged as a whole", merges_axes},
            {"the result has them apart", parts_them_again}},
           [](Fit& f) { return permute(f["x"], unmerged_axes(f).value()); }),
      move("reshape-of-permuted", node<op::Reshape>(named<op::Permute>("permute", x)),
           {{"axes are parted", [](Fit& f) { return parted(f).has_value(); }}}, permuted_parts),
      move("broadcast-to-same", node<op::BroadcastTo>(x), {has_same_type}, x_itself),
      move("broadcast-of-broadcast", node<op::BroadcastTo>(node<op::BroadcastTo>(x)), {},
           [](Fit& f) { return broadcast_to(f["x"], f.type().shape); }),
  };
}

op::Slice::Attrs slice_of(Fit& f, std::string_view name) { return f.attributes<op::Slice>(name); }

std::int64_t step_of(const op::Slice::Attrs& slice, std::size_t axis) {
  return slice.steps.empty() ? 1 : slice.steps[axis];
}

Tensor slice_of_slice(Fit& f) {
  const op::Slice::Attrs inner = slice_of(f, "inner"), outer = slice_of(f, "outer");
  IntList starts, ends, steps;
  for (std::size_t k = 0; k < inner.starts.size(); ++k) {
    const std::int64_t size = f.type().shape[static_cast<int>(k)];
    steps.push_back(step_of(inner, k) * step_of(outer, k));
    starts.push_back(inner.starts[k] + outer.starts[k] * step_of(inner, k));
    ends.push_back(size == 0 ? starts.back() : starts.back() + (size - 1) * steps.back() + 1);
  }
  return slice(f["x"], starts, ends, steps);
}

// Which operand of a concatenation a slice lies in, and where it begins there.
struct Part {
  ClassId operand;
  std::int64_t before = 0;
};
std::optional<Part> part_of(Fit& f) {
  const auto axis = f.attributes<op::Concat>("concat").axis;
  const op::Slice::Attrs cut = slice_of(f, "slice");
  const std::int64_t start = cut.starts[static_cast<std::size_t>(axis)],
                     end = cut.ends[static_cast<std::size_t>(axis)];
  std::int64_t before = 0;
  for (const ClassId operand : f.operands("concat")) {
    const std::int64_t size = f.joint().type(operand).shape[static_cast<int>(axis)];
    if (start >= before && end <= before + size) return Part{operand, before};
    before += size;
  }
  return std::nullopt;
}
Tensor slice_of_part(Fit& f) {
  const Part part = part_of(f).value();
  const auto axis = static_cast<std::size_t>(f.attributes<op::Concat>("concat").axis);
  op::Slice::Attrs cut = slice_of(f, "slice");
  cut.starts[axis] -= part.before;
  cut.ends[axis] -= part.before;
  return slice(f.joint().tensor(part.operand), cut.starts, cut.ends, cut.steps);
}

bool is_one_index(Fit& f) { return f.type("i").shape.rank() == 0; }
bool is_in_range(Fit& f) {
  const auto axis = static_cast<int>(f.attributes<op::Take>("take").axis);
  return !f.is_number("i") ||
         (f.number("i") >= 0 && f.number("i") < static_cast<double>(f.type("x").shape[axis]));
}

// Whether a type holds every number of another one.
bool holds(DType wide, DType narrow) {
  if (wide == narrow) return true;
  if (is_float(wide) && is_float(narrow)) return wide == f64 || (wide == f32 && narrow != f64);
  if (is_float(wide)) return narrow == boolean || (narrow != i64 && wide == f64);
  return !is_float(narrow) && (narrow == boolean || wide == i64);
}

bool is_held(Fit& f) { return holds(f.type("wide").dtype, f.type("x").dtype); }

std::vector<Rule> cuts() {
  return {
      move("slice-of-everything", node<op::Slice>(x), {has_same_type}, x_itself),
      move("slice-of-slice", named<op::Slice>("outer", named<op::Slice>("inner", x)), {},
           slice_of_slice),
      move("slice-of-concatenated",
           named<op::Slice>("slice", with_any_operands<op::Concat>("concat")),
           {{"it lies in one part", [](Fit& f) { return part_of(f).has_value(); }}}, slice_of_part),
      move("concatenation-of-one", node<op::Concat>(x), {}, x_itself),
      // One index that is known: as a slice it needs no check and no table.
      move("take-of-number", named<op::Take>("take", x, any("i")),
           {is_number("i"), {"i is one index", is_one_index}, {"i is in range", is_in_range}},
           [](Fit& f) {
             const auto first = static_cast<std::int64_t>(f.number("i"));
             return reshape(
                 slice_axis(f["x"], f.attributes<op::Take>("take").axis, first, first + 1),
                 f.type().shape.vec());
           }),
      move("cast-to-same", node<op::Cast>(x), {has_same_type}, x_itself),
      move("cast-there-and-back", node<op::Cast>(named<op::Cast>("wide", x)),
           {has_same_type, {"the type between holds every number", is_held}}, x_itself),
  };
}

}  // namespace

std::vector<Rule> movement_rules() {
  std::vector<Rule> all = reshapes();
  for (Rule& rule : cuts()) all.push_back(std::move(rule));
  return all;
}

}  // namespace pantala::rewrite
