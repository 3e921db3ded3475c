// Movement ops: index maps. Each primitive's adjoint is another of them (or a sum), so gradients
// are exact and can be differentiated again.
#include "ops/movement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/define.h"
#include "ops/indexing.h"

namespace pantala::ops {
namespace {

using op::AxesAttrs;
using op::AxisAttrs;
using op::DiagonalAttrs;
using op::ShapeAttrs;

struct Family {
  static constexpr std::string_view kFamily = "movement";
};

struct Reshape : op::Reshape, Family {
  static constexpr OpInfo info{
      name, "(x) -> y",
      "The same elements in row-major order under another shape; one size may be -1.", "Reshape"};
  static void infer(InferContext& c, Attrs& a) {
    const auto unknown = std::find(a.shape.begin(), a.shape.end(), -1);
    if (unknown != a.shape.end()) {
      Ints rest = a.shape;
      rest[static_cast<std::size_t>(unknown - a.shape.begin())] = 1;
      if (std::find(rest.begin(), rest.end(), -1) != rest.end())
        c.fail(fmt::format("at most one size may be -1: [{}]", fmt::join(a.shape, ",")));
      const std::int64_t known = Shape(rest).numel();
      if (known == 0 || c.shape(0).numel() % known != 0)
        c.fail(fmt::format("{} elements do not fit [{}] ({})", c.shape(0).numel(),
                           fmt::join(a.shape, ","), c.describe_inputs()));
      a.shape[static_cast<std::size_t>(unknown - a.shape.begin())] = c.shape(0).numel() / known;
    }
    const Shape shape(a.shape);
    if (shape.numel() != c.shape(0).numel())
      c.fail(fmt::format("{} has {} elements, {} has {}", c.describe_inputs(), c.shape(0).numel(),
                         shape.str(), shape.numel()));
    c.result({c.in(0).dtype, shape});
  }
  static Literal eval(const EvalContext& c, const Attrs& a) { return c.in(0).reshaped(a.shape); }
  static void grad(GradContext& g) {
    g.give(0, [&] { return reshape(g.dy(), g.in().shape().vec()); });
  }
  static std::vector<Sample> samples() {
    return {sample({floats({2, 3, 4})}, Attrs{{6, 4}}), sample({floats({2, 3})}, Attrs{{-1}}),
            sample({floats({1})}, Attrs{{}}), sample({floats({0, 3})}, Attrs{{3, 0, 2}})};
  }
};

// Ops that change nothing: they say how values are to be computed.
struct Same : Family {
  static void infer(InferContext& c) { c.result(c.in(0)); }
  static Literal eval(const EvalContext& c) { return c.in(0); }
  static void grad(GradContext& g) {
    g.give(0, [&] { return g.dy(); });
  }
  static std::vector<Sample> samples() { return {sample({floats({2, 3})})}; }
};

struct Apart : op::Apart, Same {
  static constexpr OpInfo info{
      name, "(x) -> y", "x itself; what reads it is computed by itself, apart from what makes x."};
};

struct Kept : op::Kept, Same {
  static constexpr OpInfo info{
      name, "(x) -> y", "x itself, which lies in memory: what reads it does not compute it again."};
};

struct Permute : op::Permute, Family {
  static constexpr OpInfo info{name, "(x) -> y", "Axis k of the result is axis axes[k] of x.",
                               "Transpose"};
  static void infer(InferContext& c, Attrs& a) {
    const int rank = c.shape(0).rank();
    if (std::ssize(a.axes) != rank)
      c.fail(fmt::format("{} axes given for {}", a.axes.size(), c.describe_inputs()));
    Ints sizes;
    for (std::int64_t& axis : a.axes)
      sizes.push_back(c.shape(0)[static_cast<int>(axis = c.axis(axis, rank))]);
    c.axes(a.axes, rank);
    c.result({c.in(0).dtype, Shape(sizes)});
  }
  static Literal eval(const EvalContext& c, const Attrs& a) {
    const Ints in_strides = c.in(0).shape().strides();
    Ints strides, sizes;
    for (const std::int64_t axis : a.axes)
      strides.push_back(in_strides[axis]), sizes.push_back(c.in(0).shape()[static_cast<int>(axis)]);
    return gather_from(c.in(0), sizes, [&](const Index& index) { return flat_of(index, strides); });
  }
  static void grad(GradContext& g, const Attrs& a) {
    Ints inverse(a.axes.size());
    for (std::size_t k = 0; k < a.axes.size(); ++k)
      inverse[a.axes[k]] = static_cast<std::int64_t>(k);
    g.give(0, [&] { return permute(g.dy(), inverse); });
  }
  static std::vector<Sample> samples() {
    return {sample({floats({2, 3, 4})}, Attrs{{2, 0, 1}}), sample({floats({3, 3})}, Attrs{{1, 0}}),
            sample({floats({1, 5})}, Attrs{{-1, 0}}), sample({floats({})}, Attrs{{}})};
  }
};

struct Transpose : Family {
  struct Attrs {
    std::int64_t axis_a = -2, axis_b = -1;
    static void fields(auto&& f, auto& a) {
      f("axis_a", a.axis_a, "one axis");
      f("axis_b", a.axis_b, "the other");
    }
  };
  static constexpr OpInfo info{"transpose", "(x) -> y", "Two axes exchanged."};
  static constexpr bool kSugar = true;
  static void infer(InferContext& c, Attrs& a) {
    const int rank = c.shape(0).rank();
    a.axis_a = c.axis(a.axis_a, rank);
    a.axis_b = c.axis(a.axis_b, rank);
    Ints sizes = c.shape(0).vec();
    std::swap(sizes[a.axis_a], sizes[a.axis_b]);
    c.result({c.in(0).dtype, Shape(sizes)});
  }
  static Tensor expand(const ExpandContext& c, const Attrs& a) {
    Ints axes(static_cast<std::size_t>(c.in(0).rank()));
    std::iota(axes.begin(), axes.end(), 0);
    std::swap(axes[a.axis_a], axes[a.axis_b]);
    return permute(c.in(0), axes);
  }
  static std::vector<Sample> samples() {
    return {sample({floats({2, 3})}, Attrs{}), sample({floats({2, 1, 3, 4})}, Attrs{1, 3})};
  }
};

struct BroadcastTo : op::BroadcastTo, Family {
  static constexpr OpInfo info{
      name, "(x) -> y",
      "x repeated along axes of size 1 and along new leading axes, right-aligned.", "Expand"};
  static void infer(InferContext& c, Attrs& a) {
    const Shape target(a.shape);
    Shape common;
    if (!broadcast_shapes(c.shape(0), target, common) || !(common == target))
      c.fail(fmt::format("{} does not broadcast to {}", c.describe_inputs(), target.str()));
    c.result({c.in(0).dtype, target});
  }
  static Literal eval(const EvalContext& c, const Attrs& a) {
    const Shape& from = c.in(0).shape();
    Ints strides(a.shape.size(), 0);
    const std::size_t lead = a.shape.size() - static_cast<std::size_t>(from.rank());
    for (int axis = 0; axis < from.rank(); ++axis)
      if (from[axis] != 1) strides[lead + static_cast<std::size_t>(axis)] = from.strides()[axis];
    return gather_from(c.in(0), a.shape,
                       [&](const Index& index) { return flat_of(index, strides); });
  }
  static void grad(GradContext& g, const Attrs& a) {
    g.give(0, [&] {
      const Shape& to = g.in().shape();
      const auto lead = std::ssize(a.shape) - to.rank();
      Ints axes;
      for (std::int64_t axis = 0; axis < std::ssize(a.shape); ++axis)
        if (axis < lead || to[static_cast<int>(axis - lead)] != a.shape[axis]) axes.push_back(axis);
      const Tensor summed = axes.empty() ? g.dy() : sum(g.dy(), axes, true);
      return reshape(summed, to.vec());
    });
  }
  static std::vector<Sample> samples() {
    return {sample({floats({4, 1})}, Attrs{{4, 4}}), sample({floats({4})}, Attrs{{4, 4}}),
            sample({floats({})}, Attrs{{2, 3}}), sample({floats({2, 1, 3})}, Attrs{{2, 2, 5, 3}}),
            sample({floats({1})}, Attrs{{0}})};
  }
};

struct Unsqueeze : Family {
  using Attrs = AxisAttrs;
  static constexpr OpInfo info{"unsqueeze", "(x) -> y", "A new axis of size 1.", "Unsqueeze"};
  static constexpr bool kSugar = true;
  static void infer(InferContext& c, Attrs& a) {
    a.axis = c.axis(a.axis, c.shape(0).rank() + 1);
    if (c.shape(0).rank() == Shape::kMaxRank)
      c.fail(fmt::format("{} has {} axes already", c.describe_inputs(), Shape::kMaxRank));
    c.result({c.in(0).dtype, c.shape(0).insert(static_cast<int>(a.axis), 1)});
  }
  static Tensor expand(const ExpandContext& c, const Attrs& a) {
    const std::int64_t axis = a.axis < 0 ? a.axis + c.in(0).rank() + 1 : a.axis;
    return reshape(c.in(0), c.in(0).shape().insert(static_cast<int>(axis), 1).vec());
  }
  static std::vector<Sample> samples() {
    return {sample({floats({2, 3})}, Attrs{1}), sample({floats({})}, Attrs{-1})};
  }
};

struct Squeeze : Family {
  using Attrs = AxisAttrs;
  static constexpr OpInfo info{"squeeze", "(x) -> y", "One axis of size 1 removed.", "Squeeze"};
  static constexpr bool kSugar = true;
  static void infer(InferContext& c, Attrs& a) {
    a.axis = c.axis(a.axis, c.shape(0).rank());
    if (c.shape(0)[static_cast<int>(a.axis)] != 1)
      c.fail(fmt::format("the size of axis {} is not 1 ({})", a.axis, c.describe_inputs()));
    c.result({c.in(0).dtype, c.shape(0).without(static_cast<int>(a.axis))});
  }
  static Tensor expand(const ExpandContext& c, const Attrs& a) {
    return reshape(c.in(0), c.in(0).shape().without(static_cast<int>(a.axis)).vec());
  }
  static std::vector<Sample> samples() {
    return {sample({floats({2, 1, 3})}, Attrs{1}), sample({floats({1})}, Attrs{0})};
  }
};

struct Flatten : Family {
  struct Attrs {
    std::int64_t first = 0, last = -1;
    static void fields(auto&& f, auto& a) {
      f("first", a.first, "first axis to merge");
      f("last", a.last, "last axis to merge");
    }
  };
  static constexpr OpInfo info{"flatten", "(x) -> y", "Axes first to last merged into one.",
                               "Flatten"};
  static constexpr bool kSugar = true;
  static Ints merged(const Shape& shape, const Attrs& a) {
    Ints sizes(shape.begin(), shape.begin() + a.first);
    sizes.push_back(Shape(Ints(shape.begin() + a.first, shape.begin() + a.last + 1)).numel());
    sizes.insert(sizes.end(), shape.begin() + a.last + 1, shape.end());
    return sizes;
  }
  static void infer(InferContext& c, Attrs& a) {
    a.first = c.axis(a.first, c.shape(0).rank());
    a.last = c.axis(a.last, c.shape(0).rank());
    if (a.first > a.last)
      c.fail(fmt::format("first axis {} is behind last axis {} ({})", a.first, a.last,
                         c.describe_inputs()));
    c.result({c.in(0).dtype, Shape(merged(c.shape(0), a))});
  }
  static Tensor expand(const ExpandContext& c, const Attrs& a) {
    return reshape(c.in(0), merged(c.in(0).shape(), a));
  }
  static std::vector<Sample> samples() {
    return {sample({floats({2, 3, 4})}, Attrs{1, -1}), sample({floats({2, 3, 1, 2})}, Attrs{1, 2})};
  }
};

struct Iota : op::Iota, Family {
  static constexpr OpInfo info{name, "() -> y", "0, 1, 2, ... along one axis.", "Range"};
  static void infer(InferContext& c, Attrs& a) {
    const Shape shape(a.shape);
    a.axis = c.axis(a.axis, shape.rank());
    if (a.dtype == boolean) c.fail("cannot count in bool");
    c.result({a.dtype, shape});
  }
  static Literal eval(const EvalContext& c, const Attrs& a) {
    Literal out(c.result_type());
    for_each_index(out.shape(), [&](const Index& index, std::int64_t flat) {
      if (out.is_float())
        out.f()[flat] = static_cast<double>(index[a.axis]);
      else
        out.i()[flat] = wrap_to(a.dtype, index[a.axis]);
    });
    return out;
  }
  static std::vector<Sample> samples() {
    return {sample({}, Attrs{{3, 2}, 0, i64}), sample({}, Attrs{{2, 5}, -1, f32})};
  }
};

void infer_matrix(InferContext& c, DiagonalAttrs& a) {
  if (c.shape(0).rank() < 2) c.fail("needs at least 2 axes: " + c.describe_inputs());
  constexpr std::int64_t kMost = std::int64_t{1} << 60;
  if (a.diagonal > kMost || a.diagonal < -kMost)
    c.fail(fmt::format("diagonal {} is out of range", a.diagonal));
  c.result(c.in(0));
}
// column - row of each element of the last two axes, in the shape of x
Tensor column_minus_row(const Tensor& x) {
  const Shape plane{x.dim(-2), x.dim(-1)};
  return broadcast_to(iota_beside(x, plane, 1) - iota_beside(x, plane, 0), x.shape());
}

struct Tril : op::Tril, Family {
  static constexpr OpInfo info{name, "(x) -> y",
                               "The lower triangle of the last two axes, zeros above `diagonal`."};
  static void infer(InferContext& c, Attrs& a) { infer_matrix(c, a); }
  static Tensor expand(const ExpandContext& c, const Attrs& a) {
    return where(le(column_minus_row(c.in(0)), a.diagonal), c.in(0), 0);
  }
  static void grad(GradContext& g, const Attrs& a) {
    g.give(0, [&] { return tril(g.dy(), a.diagonal); });
  }
  static std::vector<Sample> samples() {
    return {sample({floats({4, 5})}, Attrs{-1}), sample({floats({3, 3})}, Attrs{0}),
            sample({floats({2, 1, 3})}, Attrs{1})};
  }
};

struct Triu : op::Triu, Family {
  static constexpr OpInfo info{name, "(x) -> y",
                               "The upper triangle of the last two axes, zeros below `diagonal`.",
                               "Trilu"};
  static void infer(InferContext& c, Attrs& a) { infer_matrix(c, a); }
  static Tensor expand(const ExpandContext& c, const Attrs& a) {
    return where(ge(column_minus_row(c.in(0)), a.diagonal), c.in(0), 0);
  }
  static void grad(GradContext& g, const Attrs& a) {
    g.give(0, [&] { return triu(g.dy(), a.diagonal); });
  }
  static std::vector<Sample> samples() {
    return {sample({floats({4, 5})}, Attrs{1}), sample({floats({3, 3})}, Attrs{0}),
            sample({floats({2, 1, 3})}, Attrs{-1})};
  }
};

}  // namespace

std::vector<const OpDef*> movement_ops() {
  return family<Reshape, Apart, Kept, Permute, Transpose, BroadcastTo, Unsqueeze, Squeeze, Flatten,
                Iota, Tril, Triu>();
}

}  // namespace pantala::ops

namespace pantala {

using namespace ops;

Tensor reshape(Operand x, const IntList& shape) {
  return x.tensor().shape().vec() == shape ? x.tensor() : make<Reshape>({x}, {shape});
}
Tensor permute(Operand x, const IntList& axes) {
  IntList same(axes.size());
  std::iota(same.begin(), same.end(), 0);
  return axes == same && std::ssize(axes) == x.tensor().rank() ? x.tensor()
                                                               : make<Permute>({x}, {axes});
}
Tensor transpose(Operand x, std::int64_t a, std::int64_t b) { return make<Transpose>({x}, {a, b}); }
Tensor broadcast_to(Operand x, const Shape& shape) {
  return x.tensor().shape() == shape ? x.tensor() : make<BroadcastTo>({x}, {shape.vec()});
}
Tensor unsqueeze(Operand x, std::int64_t axis) { return make<Unsqueeze>({x}, {axis}); }
Tensor squeeze(Operand x, std::int64_t axis) { return make<Squeeze>({x}, {axis}); }
Tensor flatten(Operand x, std::int64_t first, std::int64_t last) {
  return make<Flatten>({x}, {first, last});
}
Tensor tril(Operand x, std::int64_t diagonal) { return make<Tril>({x}, {diagonal}); }
Tensor triu(Operand x, std::int64_t diagonal) { return make<Triu>({x}, {diagonal}); }
Tensor iota_beside(const Tensor& x, const Shape& shape, std::int64_t axis, DType dtype) {
  return x.graph()->append(op_def<Iota>(), {}, ir::to_values(Iota::Attrs{shape.vec(), axis, dtype}),
                           {})[0];
}

}  // namespace pantala
