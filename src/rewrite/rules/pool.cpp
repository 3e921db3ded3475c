// Rules about the gradients of pools.
#include "ops/pool.h"

#include <algorithm>
#include <utility>

#include "ops/arithmetic.h"
#include "ops/reduce.h"
#include "pantala/ops.h"
#include "rewrite/rules/rules.h"

namespace pantala::rewrite {

namespace {

const Pattern g = any("g"), y = any("y"), i = any("i");

Tensor pool_grad(Fit& f, const Tensor& gradient, const Tensor& positions) {
  return ops::apply(ops::def<op::MaxPool2dGrad>(), {gradient, positions},
                    ir::to_values(f.attributes<op::MaxPool2dGrad>("gradient")))[0];
}

Condition sums_axis(std::string name, std::int64_t axis) {
  return {std::move(name), [axis](Fit& f) {
            return std::ranges::count(f.attributes<op::Sum>("sum").axes, axis) == 1;
          }};
}

Tensor sum_of(Fit& f, const Tensor& x) {
  return ops::apply(ops::def<op::Sum>(), {x}, ir::to_values(f.attributes<op::Sum>("sum")))[0];
}

}  // namespace

std::vector<Rule> pool_rules() {
  const Pattern pool = named<op::MaxPool2d>("pool", y);
  const Pattern gradient = named<op::MaxPool2dGrad>("gradient", g, result(1, pool));
  return {
      // The mask of a ReLU below a pool needs to know only what the pool let through: where a
      // window's largest value is not above 0, nothing of its gradient passes.
      {.name = "relu-mask-above-pool",
       .promise = Promise::bits,
       .left = node<op::Where>(node<op::Le>(y, number(0)), number(0), gradient),
       .right =
           [](Fit& f) {
             const std::vector<Tensor> pooled =
                 ops::apply(ops::def<op::MaxPool2d>(), {f["y"]},
                            ir::to_values(f.attributes<op::MaxPool2d>("pool")));
             return pool_grad(f, where(le(pooled[0], 0), 0, f["g"]), pooled[1]);
           }},
      // Every window gives its gradient to exactly one element.
      {.name = "sum-of-pool-gradient",
       .promise = Promise::real,
       .left = named<op::Sum>("sum", node<op::MaxPool2dGrad>(g, i)),
       .when = {sums_axis("sums over the height", 2), sums_axis("sums over the width", 3)},
       .right = [](Fit& f) { return sum_of(f, f["g"]); }},
  };
}

}  // namespace pantala::rewrite
