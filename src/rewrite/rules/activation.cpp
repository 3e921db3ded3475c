// Rules that recognise activations. Exporters write their numbers in f32.
#include "ops/activation.h"

#include <cmath>
#include <numbers>
#include <utility>

#include "ops/arithmetic.h"
#include "pantala/ops.h"
#include "rewrite/rules/rules.h"

namespace pantala::rewrite {

namespace {

const Pattern x = any("x"), u = any("u"), c = any("c"), k = any("k");

Rule activation(std::string name, Promise promise, Pattern left, std::function<Tensor(Fit&)> right,
                std::vector<Condition> when = {}) {
  return canonical_rule(std::move(name), promise, std::move(left), std::move(when),
                        std::move(right));
}

// As near as f32 comes, or f64 where that is computed.
Condition is_near(std::string variable, double expected) {
  std::string name = variable + " is the function's";
  return {std::move(name), [=](Fit& f) {
            const double margin = f.type().dtype == f64 ? 1e-14 : 1e-6;
            return f.is_number(variable) && std::abs(f.number(variable) / expected - 1) < margin;
          }};
}
Tensor gelu_of_x(Fit& f) { return gelu(f["x"]); }
Tensor gelu_tanh_of_x(Fit& f) { return gelu_tanh(f["x"]); }
Tensor silu_of_x(Fit& f) { return silu(f["x"]); }
Tensor swiglu_of_both(Fit& f) { return swiglu(f["x"], f["u"]); }

Pattern times(const Pattern& a, const Pattern& b) { return node<op::Mul>(a, b); }
Pattern plus_one(const Pattern& a) { return node<op::Add>(a, number(1)); }
Pattern half_of(const Pattern& a) { return times(a, number(0.5)); }

// x * 0.5 * y, with the half wherever it may stand.
std::vector<std::pair<std::string, Pattern>> halves(const std::string& name, const Pattern& y) {
  return {
      {name, half_of(times(x, y))},
      {name + "-reversed", half_of(times(y, x))},
      {name + "-of-half", times(half_of(x), y)},
      {name + "-of-half-reversed", times(y, half_of(x))},
      {name + "-half-inside", times(x, half_of(y))},
      {name + "-half-inside-reversed", times(half_of(y), x)},
  };
}

}  // namespace

std::vector<Rule> activation_rules() {
  const Pattern by_erf = plus_one(node<op::Erf>(times(x, c)));
  const Pattern cube = times(times(node<op::Square>(x), x), k);
  const Pattern by_tanh = plus_one(node<op::Tanh>(times(node<op::Add>(x, cube), c)));
  const Pattern gated = node<op::Silu>(x);
  std::vector<Rule> rules = {
      activation("silu", Promise::bits, times(x, node<op::Sigmoid>(x)), silu_of_x),
      activation("silu-reversed", Promise::bits, times(node<op::Sigmoid>(x), x), silu_of_x),
      activation("swiglu", Promise::bits, times(gated, u), swiglu_of_both),
      activation("swiglu-reversed", Promise::bits, times(u, gated), swiglu_of_both),
  };
  const Condition gelu_factor = is_near("c", 1 / std::numbers::sqrt2);
  const std::vector<Condition> tanh_factors = {
      is_near("c", std::numbers::sqrt2 * std::numbers::inv_sqrtpi), is_near("k", 0.044715)};
  for (auto& [name, left] : halves("gelu", by_erf))
    rules.push_back(activation(name, Promise::real, left, gelu_of_x, {gelu_factor}));
  for (auto& [name, left] : halves("gelu-tanh", by_tanh))
    rules.push_back(activation(name, Promise::real, left, gelu_tanh_of_x, tanh_factors));
  return rules;
}

}  // namespace pantala::rewrite
