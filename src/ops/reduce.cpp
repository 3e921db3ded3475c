// Reductions: sum, amax and amin are primitives; mean, prod, var and logsumexp are defined by them.
#include "ops/reduce.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ops/define.h"
#include "ops/indexing.h"

namespace pantala::ops {
namespace {

using op::ArgAttrs;
using op::ReduceAttrs;

struct Family {
  static constexpr std::string_view kFamily = "reduce";
};

bool reduces(const Ints& axes, std::int64_t axis) {
  return std::binary_search(axes.begin(), axes.end(), axis);
}

Shape reduced_shape(const Shape& shape, const Ints& axes, bool keep) {
  Ints sizes;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (!reduces(axes, axis))
      sizes.push_back(shape[axis]);
    else if (keep)
      sizes.push_back(1);
  }
  return Shape(sizes);
}

std::int64_t reduced_count(const Shape& shape, const Ints& axes) {
  std::int64_t count = 1;
  for (const std::int64_t axis : axes) count *= shape[static_cast<int>(axis)];
  return count;
}

void infer_reduce(InferContext& c, ReduceAttrs& a) {
  if (c.in(0).dtype == boolean) c.fail("needs numbers: " + c.describe_inputs());
  a.axes = c.axes(a.axes, c.shape(0).rank());
  c.result({c.in(0).dtype, reduced_shape(c.shape(0), a.axes, a.keepdims)});
}

void infer_float_reduce(InferContext& c, ReduceAttrs& a) {
  c.require_float(0);
  infer_reduce(c, a);
}

void require_elements(InferContext& c, const Ints& axes) {
  if (reduced_count(c.shape(0), axes) == 0 && c.results()[0].shape.numel() != 0)
    c.fail("an empty axis has no extreme: " + c.describe_inputs());
}

// Folds the elements of each output position in row-major order of the input.
template <class F>
Literal fold(const Literal& in, const Ints& axes, bool keep, Number start, F&& combine) {
  Literal out(Type{in.dtype(), reduced_shape(in.shape(), axes, keep)});
  const Ints kept = reduced_shape(in.shape(), axes, true).strides();
  Ints strides(kept);
  for (const std::int64_t axis : axes) strides[axis] = 0;
  for (std::int64_t k = 0; k < out.numel(); ++k) {
    if (out.is_float())
      out.f()[k] = start.real();
    else
      out.i()[k] = start.i;
  }
  for_each_index(in.shape(), [&](const Index& index, std::int64_t flat) {
    const std::int64_t to = flat_of(index, strides);
    if (out.is_float())
      out.f()[to] = combine(Number(out.f()[to]), Number(in.f()[flat])).f;
    else
      out.i()[to] =
          wrap_to(in.dtype(), combine(Number::of(out.i()[to]), Number::of(in.i()[flat])).i);
  });
  return out;
}

// A reduced value repeated along the reduced axes again.
Tensor spread(const Tensor& reduced, const Shape& shape, const Ints& axes) {
  return broadcast_to(reshape(reduced, reduced_shape(shape, axes, true).vec()), shape);
}

std::vector<Sample> reduce_samples(double low = -1, double high = 1) {
  const auto in = [&](Shape shape) { return floats(std::move(shape), low, high); };
  return {sample({in({5})}, ReduceAttrs{{0}, false}),
          sample({in({4, 6})}, ReduceAttrs{{1}, true}),
          sample({in({3, 3})}, ReduceAttrs{{0}, false}),
          sample({in({2, 3, 4, 5})}, ReduceAttrs{{1, 3}, false}),
          sample({in({2, 3})}, ReduceAttrs{{}, false}),
          sample({in({1, 7, 1})}, ReduceAttrs{{-2}, false}),
          sample({in({})}, ReduceAttrs{{}, false})};
}

struct Sum : op::Sum, Family {
  static constexpr OpInfo info{name, "(x) -> y", "The sum over the axes.", "ReduceSum"};
  static void infer(InferContext& c, Attrs& a) { infer_reduce(c, a); }
  static Literal eval(const EvalContext& c, const Attrs& a) {
    return fold(c.in(0), a.axes, a.keepdims, c.in(0).is_float() ? Number(0.0) : Number::of(0),
                [](Number x, Number y) { return x + y; });
  }
  static void grad(GradContext& g, const Attrs& a) {
    g.give(0, [&] { return spread(g.dy(), g.in().shape(), a.axes); });
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> all = reduce_samples();
    all.push_back(sample({floats({0, 3})}, Attrs{{0}, false}));
    return all;
  }
};

// The elements equal to the extreme share its gradient.
void extreme_grad(GradContext& g, const Ints& axes) {
  g.give(0, [&] {
    const Shape& shape = g.in().shape();
    const Tensor hit = where(eq(g.in(), spread(g.out(), shape, axes)), ones_like(g.in()), 0.0);
    const Tensor share = g.dy() / sum(hit, axes, g.out().rank() == shape.rank());
    return hit * spread(share, shape, axes);
  });
}

struct Amax : op::Amax, Family {
  static constexpr OpInfo info{
      name, "(x) -> y",
      "The largest element along the axes; NaN if there is one. Equal elements share the gradient.",
      "ReduceMax"};
  static void infer(InferContext& c, Attrs& a) {
    infer_reduce(c, a);
    require_elements(c, a.axes);
  }
  static Literal eval(const EvalContext& c, const Attrs& a) {
    const Number start = c.in(0).is_float() ? Number(-INFINITY) : Number::of(INT64_MIN);
    return fold(c.in(0), a.axes, a.keepdims, start,
                [](Number x, Number y) { return ir::maximum(x, y); });
  }
  static void grad(GradContext& g, const Attrs& a) { extreme_grad(g, a.axes); }
  static std::vector<Sample> samples() { return reduce_samples(); }
};

struct Amin : op::Amin, Family {
  static constexpr OpInfo info{name, "(x) -> y",
                               "The smallest element along the axes; NaN if there is one. Equal "
                               "elements share the gradient.",
                               "ReduceMin"};
  static void infer(InferContext& c, Attrs& a) {
    infer_reduce(c, a);
    require_elements(c, a.axes);
  }
  static Literal eval(const EvalContext& c, const Attrs& a) {
    const Number start = c.in(0).is_float() ? Number(INFINITY) : Number::of(INT64_MAX);
    return fold(c.in(0), a.axes, a.keepdims, start,
                [](Number x, Number y) { return ir::minimum(x, y); });
  }
  static void grad(GradContext& g, const Attrs& a) { extreme_grad(g, a.axes); }
  static std::vector<Sample> samples() { return reduce_samples(); }
};

struct Mean : op::Mean, Family {
  static constexpr OpInfo info{name, "(x) -> y", "The mean over the axes.", "ReduceMean"};
  static void infer(InferContext& c, Attrs& a) { infer_float_reduce(c, a); }
  static Tensor expand(const ExpandContext& c, const Attrs& a) {
    return sum(c.in(0), a.axes, a.keepdims) /
           static_cast<double>(reduced_count(c.in(0).shape(), a.axes));
  }
  static std::vector<Sample> samples() { return reduce_samples(); }
};

struct Prod : op::Prod, Family {
  static constexpr OpInfo info{name, "(x) -> y", "The product over the axes.", "ReduceProd"};
  static void infer(InferContext& c, Attrs& a) { infer_float_reduce(c, a); }
  // Halves multiplied with each other until one element is left: the gradient, through mul, is
  // exact even where elements are 0.
  static Tensor expand(const ExpandContext& c, const Attrs& a) {
    const Shape& shape = c.in(0).shape();
    Ints order;
    for (int axis = 0; axis < shape.rank(); ++axis)
      if (!reduces(a.axes, axis)) order.push_back(axis);
    order.insert(order.end(), a.axes.begin(), a.axes.end());
    std::int64_t n = reduced_count(shape, a.axes);
    const Shape kept = reduced_shape(shape, a.axes, false);
    Tensor t = reshape(permute(c.in(0), order), {kept.numel(), n});  // [outputs, elements]
    if (n == 0) return full_beside(c.in(0), reduced_shape(shape, a.axes, a.keepdims), 1);
    for (; n > 1; n = (n + 1) / 2) {
      if (n % 2 == 1) t = concat({t, full_beside(t, {kept.numel(), 1}, 1)}, 1);
      const std::int64_t half = (n + 1) / 2;
      t = slice_axis(t, 1, 0, half) * slice_axis(t, 1, half, 2 * half);
    }
    return reshape(t, reduced_shape(shape, a.axes, a.keepdims).vec());
  }
  static std::vector<Sample> samples() { return reduce_samples(0.5, 1.5); }
};

struct Logsumexp : Family {
  using Attrs = ReduceAttrs;
  static constexpr OpInfo info{
      "logsumexp", "(x) -> y",
      "log(sum(exp(x))) over the axes, without overflow; -inf over no elements.",
      "ReduceLogSumExp"};
  static void infer(InferContext& c, Attrs& a) { infer_float_reduce(c, a); }
  // An infinite maximum is not subtracted: inf - inf would be NaN.
  static Tensor expand(const ExpandContext& c, const Attrs& a) {
    const Tensor& x = c.in(0);
    if (reduced_count(x.shape(), a.axes) == 0)
      return full_beside(x, reduced_shape(x.shape(), a.axes, a.keepdims), -INFINITY);
    const Tensor top = amax(x, a.axes, true), shift = where(is_finite(top), top, 0.0);
    const Tensor y = log(sum(exp(x - shift), a.axes, true)) + shift;
    return reshape(y, reduced_shape(x.shape(), a.axes, a.keepdims).vec());
  }
  static void grad(GradContext& g, const Attrs& a) {
    g.give(0, [&] {
      const Shape& shape = g.in().shape();
      return spread(g.dy(), shape, a.axes) * exp(g.in() - spread(g.out(), shape, a.axes));
    });
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> all = reduce_samples(-3, 3);
    all.push_back(sample({floats({0, 3})}, Attrs{{0}, false}));
    return all;
  }
};

struct Var : Family {
  struct Attrs {
    Ints axes;
    bool unbiased = true, keepdims = false;
    static void fields(auto&& f, auto& a) {
      f("axes", a.axes, "the axes; empty: all");
      f("unbiased", a.unbiased, "divide by n - 1 instead of n");
      f("keepdims", a.keepdims, "keep the axes with size 1");
    }
  };
  static constexpr OpInfo info{"var", "(x) -> y",
                               "The variance over the axes, in two passes (no cancellation)."};
  static void infer(InferContext& c, Attrs& a) {
    ReduceAttrs r{a.axes, a.keepdims};
    infer_float_reduce(c, r);
    a.axes = r.axes;
  }
  static Tensor expand(const ExpandContext& c, const Attrs& a) {
    const Tensor centred = c.in(0) - mean(c.in(0), a.axes, true);
    const std::int64_t n = reduced_count(c.in(0).shape(), a.axes) - (a.unbiased ? 1 : 0);
    return sum(centred * centred, a.axes, a.keepdims) /
           static_cast<double>(std::max<std::int64_t>(n, 0));
  }
  static std::vector<Sample> samples() {
    return {sample({floats({3, 5})}, Attrs{{1}, false, false}),
            sample({floats({3, 4, 5})}, Attrs{{0, 2}, true, true}),
            sample({floats({4})}, Attrs{{}, true, false})};
  }
};

void infer_arg(InferContext& c, ArgAttrs& a) {
  if (c.in(0).dtype == boolean) c.fail("needs numbers: " + c.describe_inputs());
  a.axis = c.axis(a.axis, c.shape(0).rank());
  c.result({i64, reduced_shape(c.shape(0), {a.axis}, a.keepdims)});
  require_elements(c, {a.axis});
}
bool is_nan(Number x) { return !x.integral && std::isnan(x.f); }
// The position of the first element that no other beats; NaN beats all.
Literal eval_arg(const EvalContext& c, const ArgAttrs& a, bool largest) {
  const Literal& in = c.in(0);
  Literal out(Type{i64, reduced_shape(in.shape(), {a.axis}, a.keepdims)});
  std::vector<Number> best(static_cast<std::size_t>(out.numel()));
  Ints strides = reduced_shape(in.shape(), {a.axis}, true).strides();
  strides[a.axis] = 0;
  for_each_index(in.shape(), [&](const Index& index, std::int64_t flat) {
    const std::int64_t to = flat_of(index, strides);
    const Number value = in.is_float() ? Number(in.f()[flat]) : Number::of(in.i()[flat]);
    const bool beats =
        !is_nan(best[to]) &&
        (is_nan(value) || (largest ? ir::gt(value, best[to]) : ir::lt(value, best[to])).truthy());
    if (index[a.axis] == 0 || beats) best[to] = value, out.i()[to] = index[a.axis];
  });
  return out;
}

struct Argmax : op::Argmax, Family {
  static constexpr OpInfo info{
      name, "(x) -> y",
      "The position of the largest element along an axis, the first of equals, as i64.", "ArgMax"};
  static void infer(InferContext& c, Attrs& a) { infer_arg(c, a); }
  static Literal eval(const EvalContext& c, const Attrs& a) { return eval_arg(c, a, true); }
  static std::vector<Sample> samples() {
    return {sample({floats({4, 9})}, Attrs{1, false}), sample({floats({3, 3})}, Attrs{0, true})};
  }
};

struct Argmin : op::Argmin, Family {
  static constexpr OpInfo info{
      name, "(x) -> y",
      "The position of the smallest element along an axis, the first of equals, as i64.", "ArgMin"};
  static void infer(InferContext& c, Attrs& a) { infer_arg(c, a); }
  static Literal eval(const EvalContext& c, const Attrs& a) { return eval_arg(c, a, false); }
  static std::vector<Sample> samples() {
    return {sample({floats({4, 9})}, Attrs{1, false}), sample({floats({3, 3})}, Attrs{0, true})};
  }
};

struct Cumsum : op::Cumsum, Family {
  static constexpr OpInfo info{name, "(x) -> y", "The running sum along an axis.", "CumSum"};
  static void infer(InferContext& c, Attrs& a) {
    if (c.in(0).dtype == boolean) c.fail("needs numbers: " + c.describe_inputs());
    a.axis = c.axis(a.axis, c.shape(0).rank());
    c.result(c.in(0));
  }
  static Literal eval(const EvalContext& c, const Attrs& a) {
    Literal out = c.in(0);
    const std::int64_t size = out.shape()[static_cast<int>(a.axis)],
                       stride = out.shape().strides()[a.axis];
    for_each_index(out.shape().with(static_cast<int>(a.axis), std::min<std::int64_t>(size, 1)),
                   [&](const Index& index, std::int64_t) {
                     const std::int64_t base = flat_of(index, out.shape().strides());
                     for (std::int64_t k = 1; k < size; ++k) {
                       const std::int64_t at = base + (a.reverse ? size - 1 - k : k) * stride,
                                          previous = at + (a.reverse ? stride : -stride);
                       if (out.is_float())
                         out.f()[at] += out.f()[previous];
                       else
                         out.i()[at] =
                             wrap_to(out.dtype(),
                                     (Number::of(out.i()[at]) + Number::of(out.i()[previous])).i);
                     }
                   });
    return out;
  }
  static void grad(GradContext& g, const Attrs& a) {
    g.give(0, [&] { return cumsum(g.dy(), a.axis, !a.reverse); });
  }
  static std::vector<Sample> samples() {
    return {sample({floats({3, 8})}, Attrs{1, false}), sample({floats({4, 4})}, Attrs{0, true}),
            sample({floats({1})}, Attrs{0, false})};
  }
};

}  // namespace

std::vector<const OpDef*> reduce_ops() {
  return family<Sum, Amax, Amin, Mean, Prod, Logsumexp, Var, Argmax, Argmin, Cumsum>();
}

}  // namespace pantala::ops

namespace pantala {

using namespace ops;

Tensor sum(Operand x, const IntList& axes, bool keepdims) {
  return make<Sum>({x}, {axes, keepdims});
}
Tensor mean(Operand x, const IntList& axes, bool keepdims) {
  return make<Mean>({x}, {axes, keepdims});
}
Tensor amax(Operand x, const IntList& axes, bool keepdims) {
  return make<Amax>({x}, {axes, keepdims});
}
Tensor amin(Operand x, const IntList& axes, bool keepdims) {
  return make<Amin>({x}, {axes, keepdims});
}
Tensor prod(Operand x, const IntList& axes, bool keepdims) {
  return make<Prod>({x}, {axes, keepdims});
}
Tensor logsumexp(Operand x, const IntList& axes, bool keepdims) {
  return make<Logsumexp>({x}, {axes, keepdims});
}
Tensor var(Operand x, const IntList& axes, const VarOptions& o) {
  return make<Var>({x}, {axes, o.unbiased, o.keepdims});
}
Tensor argmax(Operand x, std::int64_t axis, bool keepdims) {
  return make<Argmax>({x}, {axis, keepdims});
}
Tensor argmin(Operand x, std::int64_t axis, bool keepdims) {
  return make<Argmin>({x}, {axis, keepdims});
}
Tensor cumsum(Operand x, std::int64_t axis, bool reverse) {
  return make<Cumsum>({x}, {axis, reverse});
}

}  // namespace pantala
