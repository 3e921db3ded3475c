// topk: a search for positions, and the elements that stand there.
#include "ops/topk.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/define.h"
#include "ops/indexing.h"

namespace pantala::ops {
namespace {

struct Family {
  static constexpr std::string_view kFamily = "topk";
};

Shape taken_shape(InferContext& c, op::TopkAttrs& a) {
  if (c.in(0).dtype == boolean) c.fail("needs numbers: " + c.describe_inputs());
  a.axis = c.axis(a.axis, c.shape(0).rank());
  const auto axis = static_cast<int>(a.axis);
  if (a.k < 0 || a.k > c.shape(0)[axis])
    c.fail(fmt::format("k must be within the {} elements of axis {}, got {}", c.shape(0)[axis],
                       axis, a.k));
  return c.shape(0).with(axis, a.k);
}

struct TopIndices : op::TopIndices, Family {
  static constexpr OpInfo info{
      name, "(x) -> indices",
      "The positions of the k largest (smallest) elements along an axis, the best first, of equals "
      "the first; NaN is larger than every number."};
  static void infer(InferContext& c, Attrs& a) { c.result({i64, taken_shape(c, a)}); }
  static Literal eval(const EvalContext& c, const Attrs& a) {
    const Literal& in = c.in(0);
    Literal out(c.result_type());
    const auto axis = static_cast<int>(a.axis);
    const std::vector<std::int64_t> from = in.shape().strides(), to = out.shape().strides();
    const std::int64_t size = in.shape()[axis];
    // a stands before b by its value.
    const auto less = [&](std::int64_t x, std::int64_t y) {
      if (!in.is_float()) return in.i()[x] < in.i()[y];
      return std::isnan(in.f()[y]) ? !std::isnan(in.f()[x]) : in.f()[x] < in.f()[y];
    };
    for_each_index(out.shape().with(axis, std::min<std::int64_t>(a.k, 1)), [&](const Index& index,
                                                                               std::int64_t) {
      const std::int64_t base = flat_of(index, from), step = from[axis];
      std::vector<std::int64_t> order(static_cast<std::size_t>(size));
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](std::int64_t x, std::int64_t y) {
        const std::int64_t p = base + x * step, q = base + y * step;
        return a.largest ? less(q, p) : less(p, q);
      });
      for (std::int64_t k = 0; k < a.k; ++k)
        out.i()[flat_of(index, to) + k * to[axis]] = order[static_cast<std::size_t>(k)];
    });
    return out;
  }
  static std::vector<Sample> samples() {
    return {
        sample({floats({4, 9})}, Attrs{3, 1, true}), sample({floats({5, 3})}, Attrs{2, 0, false}),
        sample({ints({2, 7}, 0, 3, i32)}, Attrs{7, -1, true}),
        sample({floats({2, 40})}, Attrs{5, 1, true}), sample({floats({3, 0})}, Attrs{0, 1, true})};
  }
};

struct TopkOp : Family {
  using Attrs = op::TopkAttrs;
  static constexpr OpInfo info{
      "topk", "(x) -> (values, indices)",
      "The k largest (smallest) elements along an axis, the best first, of equals the first, and "
      "their positions as i64; NaN is larger than every number.",
      "TopK"};
  static void infer(InferContext& c, Attrs& a) {
    const Shape shape = taken_shape(c, a);
    c.result({c.in(0).dtype, shape});
    c.result({i64, shape});
  }
  static std::vector<Tensor> expand(const ExpandContext& c, const Attrs& a) {
    const Tensor indices = make<TopIndices>({c.in(0)}, a);
    return {gather(c.in(0), indices, a.axis), indices};
  }
  static std::vector<Sample> samples() {
    return {
        sample({floats({4, 9})}, Attrs{3, 1, true}), sample({floats({5, 3})}, Attrs{2, 0, false}),
        sample({floats({2, 3, 4})}, Attrs{3, -2, true}), sample({floats({3})}, Attrs{0, 0, true})};
  }
};

}  // namespace

std::vector<const OpDef*> topk_ops() { return family<TopIndices, TopkOp>(); }

}  // namespace pantala::ops

namespace pantala {

Topk topk(Operand x, std::int64_t k, const TopkOptions& o) {
  const std::vector<Tensor> results = ops::make_all<ops::TopkOp>({x}, {k, o.axis, o.largest});
  return {results[0], results[1]};
}

}  // namespace pantala
