// Rules that recognise norms. The core of those over the last axis is x / sqrt(mean(x^2) + eps): of
// centred numbers it is a layer norm, else an RMS norm. A group norm is written as the norm of each
// row of a reshaped tensor. A weight and a bias behind them join them.
#include "ops/norm.h"

#include <cmath>

#include "ops/arithmetic.h"
#include "ops/movement.h"
#include "ops/reduce.h"
#include "pantala/ops.h"
#include "rewrite/rules/rules.h"

namespace pantala::rewrite {

namespace {

const Pattern x = any("x"), w = any("w"), b = any("b"), eps = any("eps");

Pattern spread(const Pattern& of) { return node<op::BroadcastTo>(of); }

Rule norm(std::string name, Pattern left, std::function<bool(Fit&)> when,
          std::function<Tensor(Fit&)> right) {
  return canonical_rule(std::move(name), Promise::real, std::move(left), std::move(when),
                        std::move(right));
}

bool is_over_last_axis(Fit& f) {
  const op::ReduceAttrs mean = f.attributes<op::Mean>("mean");
  return mean.keepdims && mean.axes == ir::Ints{f.type("x").shape.rank() - 1};
}

bool is_root_mean_square(Fit& f) {
  return is_over_last_axis(f) && f.is_number("eps") && f.number("eps") >= 0 &&
         std::isfinite(f.number("eps"));
}
Tensor rms_norm_of_x(Fit& f) { return rms_norm(f["x"], {}, {.eps = f.number("eps")}); }

// A number for each element of the last axis.
bool is_per_last(Fit& f, std::string_view name) {
  const Shape &shape = f.type(name).shape, &all = f.type().shape;
  return all.rank() > 0 && shape.numel() == all.back() && shape.rank() > 0 &&
         shape.back() == all.back();
}
bool has_channel_weight(Fit& f) { return is_per_last(f, "w"); }
bool has_channel_bias(Fit& f) { return is_per_last(f, "b"); }
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

// Groups as the channels of a reshaped tensor, with no weight and no bias to speak of.
bool normalises_groups(Fit& f) {
  const Shape &shape = f.type("x").shape, &grouped = f.type("groups").shape;
  return shape == f.type().shape && shape.rank() >= 2 && grouped.rank() >= 2 &&
         shape[0] == grouped[0] && shape[1] % grouped[1] == 0 &&
         f.attributes<op::GroupNorm>("norm").groups == grouped[1] && f.is_number("w") &&
         f.number("w") == 1 && f.is_number("b") && f.number("b") == 0;
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
           normalises_groups, [](Fit& f) { return group_norm_of(f, {}, {}); }),
      norm(
          "group-norm-weight", node<op::Mul>(plain, spread(w)),
          [](Fit& f) { return is_per_channel(f, "w"); },
          [](Fit& f) { return group_norm_of(f, per_group_channel(f, "w"), {}); }),
      norm(
          "group-norm-bias", node<op::Add>(weighted, spread(b)),
          [](Fit& f) { return is_per_channel(f, "b"); },
          [](Fit& f) { return group_norm_of(f, f["w"], per_group_channel(f, "b")); }),
  };
}

std::vector<Rule> last_axis_norms() {
  const Pattern scale =
      spread(node<op::Rsqrt>(node<op::Add>(named<op::Mean>("mean", node<op::Square>(x)), eps)));
  const Pattern centred = node<op::Sub>(x, spread(named<op::Mean>("mean", x)));
  const Pattern rms = result(0, named<op::RmsNorm>("norm", x)),
                layer = result(0, named<op::LayerNorm>("norm", x)),
                weighted = result(0, named<op::LayerNorm>("norm", x, w));
  return {
      norm("rms-norm", node<op::Mul>(x, scale), is_root_mean_square, rms_norm_of_x),
      norm("rms-norm-reversed", node<op::Mul>(scale, x), is_root_mean_square, rms_norm_of_x),
      norm("rms-norm-weight", node<op::Mul>(rms, spread(w)), has_channel_weight, weighted_rms_norm),
      norm("rms-norm-weight-first", node<op::Mul>(spread(w), rms), has_channel_weight,
           weighted_rms_norm),
      norm("layer-norm", result(0, named<op::RmsNorm>("norm", centred)), is_over_last_axis,
           [](Fit& f) {
             return layer_norm(f["x"], {}, {}, {.eps = f.attributes<op::RmsNorm>("norm").eps});
           }),
      norm("layer-norm-weight", node<op::Mul>(layer, spread(w)), has_channel_weight,
           weighted_layer_norm),
      norm("layer-norm-weight-first", node<op::Mul>(spread(w), layer), has_channel_weight,
           weighted_layer_norm),
      norm("layer-norm-bias", node<op::Add>(weighted, spread(b)), has_channel_bias,
           biased_layer_norm),
      norm("layer-norm-bias-first", node<op::Add>(spread(b), weighted), has_channel_bias,
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
