// Rules that recognise norms. The core of those over the last axis is x / sqrt(mean(x^2) + eps): of
// centred numbers it is a layer norm, else an RMS norm. A group norm is written as the norm of each
// row of a reshaped tensor. A weight and a bias behind them join them.
#include "ops/norm.h"

#include <utility>

#include "ops/arithmetic.h"
#include "ops/movement.h"
#include "ops/reduce.h"
#include "pantala/ops.h"
#include "rewrite/rules/rules.h"

namespace pantala::rewrite {

namespace {

const Pattern x = any("x"), w = any("w"), b = any("b"), eps = any("eps");

Pattern spread(const Pattern& of) { return node<op::BroadcastTo>(of); }

Rule norm(std::string name, Pattern left, std::vector<Condition> when,
          std::function<Tensor(Fit&)> right) {
  return canonical_rule(std::move(name), Promise::real, std::move(left), std::move(when),
                        std::move(right));
}

bool is_over_last_axis(Fit& f) {
  return f.attributes<op::Mean>("mean").axes == ir::Ints{f.type("x").shape.rank() - 1};
}
bool keeps_axes(Fit& f) { return f.attributes<op::Mean>("mean").keepdims; }
bool rows_have_elements(Fit& f) {
  const Shape& shape = f.type("x").shape;
  return shape.rank() == 0 || shape.back() > 0;
}
Tensor rms_norm_of_x(Fit& f) { return rms_norm(f["x"], {}, {.eps = f.number("eps")}); }

// A number for each element of the last axis.
Condition is_per_last(std::string variable) {
  std::string name = variable + " has a number per element of a row";
  return {std::move(name), [variable = std::move(variable)](Fit& f) {
            const Shape &shape = f.type(variable).shape, &all = f.type().shape;
            const std::int64_t row = shape.rank() == 0 ? 1 : shape.back();
            return row == all.back() && shape.numel() == row;
          }};
}
Tensor per_channel(Fit& f, std::string_view name) {
  return reshape(f[name], {f.type().shape.back()});
}

double eps_of(Fit& f) { return f.attributes<op::LayerNorm>("norm").eps; }

Tensor weighted_rms_norm(Fit& f) {
  return rms_norm(f["x"], per_channel(f, "w"), {.eps = f.attributes<op::RmsNorm>("norm").eps});
}
Tensor weighted_layer_norm(Fit& f) {
  return layer_norm(f["x"], per_channel(f, "w"), {}, {.eps = eps_of(f)});
}
Tensor biased_layer_norm(Fit& f) {
  return layer_norm(f["x"], f["w"], per_channel(f, "b"), {.eps = eps_of(f)});
}

// --- group norms

// The norm of a reshaped tensor, in the shape that it had before, with no weight and no bias to
// speak of.
std::vector<Condition> normalises_groups() {
  const auto shape = [](Fit& f) -> const Shape& { return f.type("x").shape; };
  return {
      {"the shape comes back", [=](Fit& f) { return shape(f) == f.type().shape; }},
      {"there are channels", [=](Fit& f) { return shape(f).rank() >= 2; }},
      {"items stay apart",
       [=](Fit& f) { return shape(f).rank() == 0 || shape(f)[0] == f.type("groups").shape[0]; }},
      {"groups are of whole channels",
       [=](Fit& f) {
         return shape(f).rank() < 2 ||
                shape(f)[1] % f.attributes<op::GroupNorm>("norm").groups == 0;
       }},
      {"groups have elements",
       [=](Fit& f) { return shape(f).rank() < 2 || shape(f).with(0, 1).numel() > 0; }},
      is_number("w"),
      number_is("w is 1", "w", [](double value) { return value == 1; }),
      is_number("b"),
      number_is("b is 0", "b", [](double value) { return value == 0; }),
  };
}

Tensor group_norm_of(Fit& f, const std::optional<Tensor>& weight,
                     const std::optional<Tensor>& bias) {
  const op::GroupNorm::Attrs a = f.attributes<op::GroupNorm>("norm");
  return group_norm(f["x"], a.groups, weight, bias, {.eps = a.eps});
}
Tensor per_group_channel(Fit& f, std::string_view name) {
  return reshape(f[name], {f.type().shape[1]});
}

std::vector<Rule> group_norms() {
  const Pattern plain = result(0, named<op::GroupNorm>("norm", x)),
                weighted = result(0, named<op::GroupNorm>("norm", x, w));
  return {
      norm("group-norm",
           node<op::Reshape>(
               result(0, named<op::GroupNorm>("norm", named<op::Reshape>("groups", x), w, b))),
           normalises_groups(), [](Fit& f) { return group_norm_of(f, {}, {}); }),
      norm("group-norm-weight", node<op::Mul>(plain, spread(w)), {is_per_channel("w")},
           [](Fit& f) { return group_norm_of(f, per_group_channel(f, "w"), {}); }),
      norm("group-norm-bias", node<op::Add>(weighted, spread(b)), {is_per_channel("b")},
           [](Fit& f) { return group_norm_of(f, f["w"], per_group_channel(f, "b")); }),
  };
}

std::vector<Rule> last_axis_norms() {
  const std::vector<Condition> over_rows = {{"over the last axis", is_over_last_axis},
                                            {"keeps the axis", keeps_axes}};
  std::vector<Condition> root_mean_square = over_rows;
  root_mean_square.insert(
      root_mean_square.end(),
      {{"rows have elements", rows_have_elements}, is_number("eps"), is_epsilon("eps")});
  const Pattern scale =
      spread(node<op::Rsqrt>(node<op::Add>(named<op::Mean>("mean", node<op::Square>(x)), eps)));
  const Pattern centred = node<op::Sub>(x, spread(named<op::Mean>("mean", x)));
  const Pattern rms = result(0, named<op::RmsNorm>("norm", x)),
                layer = result(0, named<op::LayerNorm>("norm", x)),
                weighted = result(0, named<op::LayerNorm>("norm", x, w));
  return {
      norm("rms-norm", node<op::Mul>(x, scale), root_mean_square, rms_norm_of_x),
      norm("rms-norm-reversed", node<op::Mul>(scale, x), root_mean_square, rms_norm_of_x),
      norm("rms-norm-weight", node<op::Mul>(rms, spread(w)), {is_per_last("w")}, weighted_rms_norm),
      norm("rms-norm-weight-first", node<op::Mul>(spread(w), rms), {is_per_last("w")},
           weighted_rms_norm),
      norm("layer-norm", result(0, named<op::RmsNorm>("norm", centred)), over_rows,
           [](Fit& f) {
             return layer_norm(f["x"], {}, {}, {.eps = f.attributes<op::RmsNorm>("norm").eps});
           }),
      norm("layer-norm-weight", node<op::Mul>(layer, spread(w)), {is_per_last("w")},
           weighted_layer_norm),
      norm("layer-norm-weight-first", node<op::Mul>(spread(w), layer), {is_per_last("w")},
           weighted_layer_norm),
      norm("layer-norm-bias", node<op::Add>(weighted, spread(b)), {is_per_last("b")},
           biased_layer_norm),
      norm("layer-norm-bias-first", node<op::Add>(spread(b), weighted), {is_per_last("b")},
           biased_layer_norm),
  };
}

}  // namespace

std::vector<Rule> norm_rules() {
  std::vector<Rule> all = last_axis_norms();
  for (Rule& rule : group_norms()) all.push_back(std::move(rule));
  return all;
}

}  // namespace pantala::rewrite
