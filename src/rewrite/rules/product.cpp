// Rules about products.
#include <algorithm>
#include <cmath>
#include <utility>

#include "ops/arithmetic.h"
#include "ops/contract.h"
#include "ops/movement.h"
#include "ops/table.h"
#include "pantala/ops.h"
#include "rewrite/rules/rules.h"

namespace pantala::rewrite {

namespace {

const Pattern a = any("a"), b = any("b"), c = any("c");

op::Contract::Attrs axes_of(Fit& f) { return f.attributes<op::Contract>("product"); }

ir::Ints mapped(const ir::Ints& axes, const ir::Ints& permuted) {
  ir::Ints result;
  for (const std::int64_t axis : axes) result.push_back(permuted[static_cast<std::size_t>(axis)]);
  return result;
}

// Whether the axes that stay stand in the same order before they are permuted.
bool keeps_free_axes(const ir::Ints& permuted, const ir::Ints& batch, const ir::Ints& summed) {
  std::int64_t last = -1;
  for (std::size_t k = 0; k < permuted.size(); ++k) {
    const auto axis = static_cast<std::int64_t>(k);
    if (std::ranges::count(batch, axis) + std::ranges::count(summed, axis) > 0) continue;
    if (permuted[k] < last) return false;
    last = permuted[k];
  }
  return true;
}

ir::Ints permuted_axes(Fit& f) { return f.attributes<op::Permute>("permute").axes; }

bool is_plain(Fit& f) { return axes_of(f).batch_a.empty(); }

// --- rows that were reshaped

// The size of the last axis; of none 1.
std::int64_t row_of(const Shape& shape) { return shape.rank() == 0 ? 1 : shape.back(); }
Condition keeps_rows(std::string rows) {
  return {"rows stay as long", [rows = std::move(rows)](Fit& f) {
            return f.type("a").shape.rank() > 0 &&
                   row_of(f.type("a").shape) == row_of(f.type(rows).shape);
          }};
}
bool multiplies_rows(Fit& f) {
  return axes_of(f).contract_a == ir::Ints{f.type("rows").shape.rank() - 1};
}
// Of empty rows there may be another number.
bool has_elements(Fit& f) { return row_of(f.type("a").shape) > 0; }
Tensor product_of_rows(Fit& f) {
  const Tensor product = contract(f["a"], f["b"],
                                  {.batch_a = {},
                                   .batch_b = {},
                                   .contract_a = {f.type("a").shape.rank() - 1},
                                   .contract_b = axes_of(f).contract_b});
  return reshape(product, f.type().shape.vec());
}
// One number for each element of a row.
const Condition adds_a_row = {
    "a row is added", [](Fit& f) { return f.type("b").shape == Shape{row_of(f.type().shape)}; }};
Tensor biased_rows(Fit& f) { return reshape(f["a"] + f["b"], f.type().shape.vec()); }

// --- rows that were permuted

// Rows of a product in another order are those of the result in that order.
Tensor product_then_permuted(Fit& f) {
  op::Contract::Attrs n = axes_of(f);
  const ir::Ints order = permuted_axes(f), summed = mapped(n.contract_a, order);
  ir::Ints rows;  // the axes of a that stay, by their place in the result
  for (int axis = 0; axis < f.type("a").shape.rank(); ++axis)
    if (std::ranges::count(summed, axis) == 0) rows.push_back(axis);
  ir::Ints axes;
  for (const std::int64_t axis : order)
    if (const auto at = std::ranges::find(rows, axis); at != rows.end())
      axes.push_back(at - rows.begin());
  for (int axis = static_cast<int>(std::ssize(axes)); axis < f.type().shape.rank(); ++axis)
    axes.push_back(axis);
  n.contract_a = summed;
  return permute(ops::apply(ops::def<op::Contract>(), {f["a"], f["b"]}, ir::to_values(n))[0], axes);
}
bool turns_rows(Fit& f) { return !keeps_free_axes(permuted_axes(f), {}, axes_of(f).contract_a); }

bool keeps_last_axis(Fit& f) {
  const ir::Ints axes = permuted_axes(f);
  return !axes.empty() && axes.back() == std::ssize(axes) - 1;
}
Tensor biased_then_permuted(Fit& f) { return permute(f["a"] + f["b"], permuted_axes(f)); }

// A product reads a matrix either way round: the axes of the operand that is permuted are those
// before the permutation.
using AxesOf = ir::Ints op::Contract::Attrs::*;
Rule permuted_operand(std::string name, Pattern left, AxesOf batch, AxesOf summed) {
  Rule rule = canonical_rule(
      std::move(name), Promise::real, std::move(left),
      {{"axes that stay keep their order",
        [=](Fit& f) {
          return keeps_free_axes(permuted_axes(f), axes_of(f).*batch, axes_of(f).*summed);
        }}},
      [=](Fit& f) {
        op::Contract::Attrs n = axes_of(f);
        const ir::Ints order = permuted_axes(f);
        n.*batch = mapped(n.*batch, order);
        n.*summed = mapped(n.*summed, order);
        return ops::apply(ops::def<op::Contract>(), {f["a"], f["b"]}, ir::to_values(n))[0];
      });
  rule.worth = is_plain;
  return rule;
}

// Elements of a narrow type could overflow where their products do not.
bool keeps_range(Fit& f) {
  if (!f.is_number("c")) return true;
  const DType dtype = f.type().dtype;
  const double factor = std::abs(f.number("c"));
  return is_ordinary(factor, dtype) && (factor <= 1 || dtype == f32 || dtype == f64);
}

}  // namespace

std::vector<Rule> product_rules() {
  const Pattern pa = named<op::Permute>("permute", a), pb = named<op::Permute>("permute", b),
                rows = named<op::Reshape>("rows", a);
  return {
      permuted_operand("product-of-permuted-left", named<op::Contract>("product", pa, b),
                       &op::Contract::Attrs::batch_a, &op::Contract::Attrs::contract_a),
      permuted_operand("product-of-permuted-right", named<op::Contract>("product", a, pb),
                       &op::Contract::Attrs::batch_b, &op::Contract::Attrs::contract_b),
      {.name = "product-of-permuted-rows",
       .promise = Promise::real,
       .keeps_derivatives = true,
       .left = named<op::Contract>("product", pa, b),
       .when = {{"no batch", is_plain}},
       .worth = turns_rows,
       .right = product_then_permuted},
      {.name = "bias-of-permuted-rows",
       .promise = Promise::bits,
       .keeps_derivatives = true,
       .left = node<op::Add>(pa, node<op::BroadcastTo>(b)),
       .when = {{"the last axis stays", keeps_last_axis}, adds_a_row},
       .right = biased_then_permuted},
      {.name = "bias-first-of-permuted-rows",
       .promise = Promise::bits,
       .keeps_derivatives = true,
       .left = node<op::Add>(node<op::BroadcastTo>(b), pa),
       .when = {{"the last axis stays", keeps_last_axis}, adds_a_row},
       .right = biased_then_permuted},
      // Rows may stand in any number of axes.
      {.name = "product-of-reshaped-rows",
       .promise = Promise::real,
       .keeps_derivatives = true,
       .left = named<op::Contract>("product", rows, b),
       .when = {{"no batch", is_plain},
                {"rows are multiplied", multiplies_rows},
                keeps_rows("rows"),
                {"rows have elements", has_elements}},
       .right = product_of_rows},
      {.name = "bias-of-reshaped-rows",
       .promise = Promise::bits,
       .keeps_derivatives = true,
       .left = node<op::Add>(rows, node<op::BroadcastTo>(b)),
       .when = {keeps_rows("rows"), adds_a_row},
       .right = biased_rows},
      {.name = "bias-first-of-reshaped-rows",
       .promise = Promise::bits,
       .keeps_derivatives = true,
       .left = node<op::Add>(node<op::BroadcastTo>(b), rows),
       .when = {keeps_rows("rows"), adds_a_row},
       .right = biased_rows},
      // Where a product of attention may take the factor along.
      {.name = "scaled-product",
       .promise = Promise::real,
       .keeps_derivatives = true,
       .left = node<op::Mul>(named<op::Contract>("product", a, b), c),
       .when = {is_number("c"), {"the left factor stays in range", keeps_range}},
       .worth = [](Fit& f) { return !axes_of(f).batch_a.empty(); },
       .right =
           [](Fit& f) {
             const op::Contract::Attrs n = axes_of(f);
             return contract(f["a"] * f.number("c"), f["b"],
                             {n.batch_a, n.batch_b, n.contract_a, n.contract_b});
           }},
  };
}

}  // namespace pantala::rewrite
