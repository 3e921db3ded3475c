// Movement ops: index maps. Each primitive's adjoint is another of them (or a sum), so gradients are exact and can be differentiated again.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/define.h"
#include "ops/indexing.h"

namespace pantala::ops {
namespace {

struct Family { static constexpr std::string_view kFamily = "movement"; };

struct ShapeAttrs {
  Ints shape;
  static void fields(auto&& f, auto& a) { f("shape", a.shape, "the new sizes", Field::required); }
};
struct AxesAttrs {
  Ints axes;
  static void fields(auto&& f, auto& a) { f("axes", a.axes, "the axes", Field::required); }
};
struct AxisAttrs {
  std::int64_t axis = 0;
  static void fields(auto&& f, auto& a) { f("axis", a.axis, "the axis"); }
};

struct Reshape : Family {
  using Attrs = ShapeAttrs;
  static constexpr OpInfo info{"reshape", "(x) -> y", "The same elements in row-major order under another shape; one size may be -1.", "Reshape"};
  static void infer(InferContext& c, Attrs& a) {
    const auto unknown = std::find(a.shape.begin(), a.shape.end(), -1);
    if (unknown != a.shape.end()) {
      Ints rest = a.shape;
      rest[static_cast<std::size_t>(unknown - a.shape.begin())] = 1;
      if (std::find(rest.begin(), rest.end(), -1) != rest.end()) c.fail(fmt::format("at most one size may be -1: [{}]", fmt::join(a.shape, ",")));
      const std::int64_t known = Shape(rest).numel();
      if (known == 0 || c.shape(0).numel() % known != 0) c.fail(fmt::format("{} elements do not fit [{}] ({})", c.shape(0).numel(), fmt::join(a.shape, ","), c.describe_inputs()));
      a.shape[static_cast<std::size_t>(unknown - a.shape.begin())] = c.shape(0).numel() / known;
    }
    const Shape shape(a.shape);
    if (shape.numel() != c.shape(0).numel()) c.fail(fmt::format("{} has {} elements, {} has {}", c.describe_inputs(), c.shape(0).numel(), shape.str(), shape.numel()));
    c.result({c.in(0).dtype, shape});
  }
  static Literal eval(const EvalContext& c, const Attrs& a) { return c.in(0).reshaped(a.shape); }
  static void grad(GradContext& g) {
    g.give(0, [&] { return reshape(g.dy(), g.in().shape().vec()); });
  }
  static std::vector<Sample> samples() {
    return {sample({floats({2, 3, 4})}, Attrs{{6, 4}}), sample({floats({2, 3})}, Attrs{{-1}}), sample({floats({1})}, Attrs{{}}), sample({floats({0, 3})}, Attrs{{3, 0, 2}})};
  }
};

struct Permute : Family {
  using Attrs = AxesAttrs;
  static constexpr OpInfo info{"permute", "(x) -> y", "Axis k of the result is axis axes[k] of x.", "Transpose"};
  static void infer(InferContext& c, Attrs& a) {
    const int rank = c.shape(0).rank();
    if (std::ssize(a.axes) != rank) c.fail(fmt::format("{} axes given for {}", a.axes.size(), c.describe_inputs()));
    Ints sizes;
    for (std::int64_t& axis : a.axes) sizes.push_back(c.shape(0)[static_cast<int>(axis = c.axis(axis, rank))]);
    c.axes(a.axes, rank);
    c.result({c.in(0).dtype, Shape(sizes)});
  }
  static Literal eval(const EvalContext& c, const Attrs& a) {
    const Ints in_strides = c.in(0).shape().strides();
    Ints strides, sizes;
    for (const std::int64_t axis : a.axes) strides.push_back(in_strides[axis]), sizes.push_back(c.in(0).shape()[static_cast<int>(axis)]);
    return gather_from(c.in(0), sizes, [&](const Index& index) { return flat_of(index, strides); });
  }
  static void grad(GradContext& g, const Attrs& a) {
    Ints inverse(a.axes.size());
    for (std::size_t k = 0; k < a.axes.size(); ++k) inverse[a.axes[k]] = static_cast<std::int64_t>(k);
    g.give(0, [&] { return permute(g.dy(), inverse); });
  }
  static std::vector<Sample> samples() {
    return {sample({floats({2, 3, 4})}, Attrs{{2, 0, 1}}), sample({floats({3, 3})}, Attrs{{1, 0}}), sample({floats({1, 5})}, Attrs{{-1, 0}}), sample({floats({})}, Attrs{{}})};
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
  static std::vector<Sample> samples() { return {sample({floats({2, 3})}, Attrs{}), sample({floats({2, 1, 3, 4})}, Attrs{1, 3})}; }
};

struct BroadcastTo : Family {
  using Attrs = ShapeAttrs;
  static constexpr OpInfo info{"broadcast_to", "(x) -> y", "x repeated along axes of size 1 and along new leading axes, right-aligned.", "Expand"};
  static void infer(InferContext& c, Attrs& a) {
    const Shape target(a.shape);
    Shape common;
    if (!broadcast_shapes(c.shape(0), target, common) || !(common == target)) c.fail(fmt::format("{} does not broadcast to {}", c.describe_inputs(), target.str()));
    c.result({c.in(0).dtype, target});
  }
  static Literal eval(const EvalContext& c, const Attrs& a) {
    const Shape& from = c.in(0).shape();
    Ints strides(a.shape.size(), 0);
    const std::size_t lead = a.shape.size() - static_cast<std::size_t>(from.rank());
    for (int axis = 0; axis < from.rank(); ++axis)
      if (from[axis] != 1) strides[lead + static_cast<std::size_t>(axis)] = from.strides()[axis];
    return gather_from(c.in(0), a.shape, [&](const Index& index) { return flat_of(index, strides); });
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
    return {sample({floats({4, 1})}, Attrs{{4, 4}}), sample({floats({4})}, Attrs{{4, 4}}), sample({floats({})}, Attrs{{2, 3}}), sample({floats({2, 1, 3})}, Attrs{{2, 2, 5, 3}}),
            sample({floats({1})}, Attrs{{0}})};
  }
};

struct Unsqueeze : Family {
  using Attrs = AxisAttrs;
  static constexpr OpInfo info{"unsqueeze", "(x) -> y", "A new axis of size 1.", "Unsqueeze"};
  static constexpr bool kSugar = true;
  static void infer(InferContext& c, Attrs& a) {
    a.axis = c.axis(a.axis, c.shape(0).rank() + 1);
    if (c.shape(0).rank() == Shape::kMaxRank) c.fail(fmt::format("{} has {} axes already", c.describe_inputs(), Shape::kMaxRank));
    c.result({c.in(0).dtype, c.shape(0).insert(static_cast<int>(a.axis), 1)});
  }
  static Tensor expand(const ExpandContext& c, const Attrs& a) {
    const std::int64_t axis = a.axis < 0 ? a.axis + c.in(0).rank() + 1 : a.axis;
    return reshape(c.in(0), c.in(0).shape().insert(static_cast<int>(axis), 1).vec());
  }
  static std::vector<Sample> samples() { return {sample({floats({2, 3})}, Attrs{1}), sample({floats({})}, Attrs{-1})}; }
};

struct Squeeze : Family {
  using Attrs = AxisAttrs;
  static constexpr OpInfo info{"squeeze", "(x) -> y", "One axis of size 1 removed.", "Squeeze"};
  static constexpr bool kSugar = true;
  static void infer(InferContext& c, Attrs& a) {
    a.axis = c.axis(a.axis, c.shape(0).rank());
    if (c.shape(0)[static_cast<int>(a.axis)] != 1) c.fail(fmt::format("the size of axis {} is not 1 ({})", a.axis, c.describe_inputs()));
    c.result({c.in(0).dtype, c.shape(0).without(static_cast<int>(a.axis))});
  }
  static Tensor expand(const ExpandContext& c, const Attrs& a) { return reshape(c.in(0), c.in(0).shape().without(static_cast<int>(a.axis)).vec()); }
  static std::vector<Sample> samples() { return {sample({floats({2, 1, 3})}, Attrs{1}), sample({floats({1})}, Attrs{0})}; }
};

struct Flatten : Family {
  struct Attrs {
    std::int64_t first = 0, last = -1;
    static void fields(auto&& f, auto& a) {
      f("first", a.first, "first axis to merge");
      f("last", a.last, "last axis to merge");
    }
  };
  static constexpr OpInfo info{"flatten", "(x) -> y", "Axes first to last merged into one.", "Flatten"};
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
    if (a.first > a.last) c.fail(fmt::format("first axis {} is behind last axis {} ({})", a.first, a.last, c.describe_inputs()));
    c.result({c.in(0).dtype, Shape(merged(c.shape(0), a))});
  }
  static Tensor expand(const ExpandContext& c, const Attrs& a) { return reshape(c.in(0), merged(c.in(0).shape(), a)); }
  static std::vector<Sample> samples() { return {sample({floats({2, 3, 4})}, Attrs{1, -1}), sample({floats({2, 3, 1, 2})}, Attrs{1, 2})}; }
};

struct Slice : Family {
  struct Attrs {
    Ints starts, ends, steps;
    static void fields(auto&& f, auto& a) {
      f("starts", a.starts, "first index per axis", Field::required);
      f("ends", a.ends, "index behind the last, per axis", Field::required);
      f("steps", a.steps, "distance per axis, at least 1; empty: all 1");
    }
  };
  static constexpr OpInfo info{"slice", "(x) -> y", "Every step-th element of [start, end) along each axis.", "Slice"};
  static Ints sizes_of(const Attrs& a) {
    Ints sizes;
    for (std::size_t k = 0; k < a.starts.size(); ++k) sizes.push_back(std::max<std::int64_t>(0, (a.ends[k] - a.starts[k] + a.steps[k] - 1) / a.steps[k]));
    return sizes;
  }
  static void infer(InferContext& c, Attrs& a) {
    const auto rank = static_cast<std::size_t>(c.shape(0).rank());
    if (a.starts.size() != a.ends.size() || a.starts.size() > rank || a.steps.size() > a.starts.size())
      c.fail(fmt::format("{} starts, {} ends and {} steps given for {}", a.starts.size(), a.ends.size(), a.steps.size(), c.describe_inputs()));
    a.steps.resize(rank, 1);
    for (std::size_t k = 0; k < rank; ++k) {
      const std::int64_t size = c.shape(0)[static_cast<int>(k)];
      if (k >= a.starts.size()) a.starts.push_back(0), a.ends.push_back(size);
      const auto clip = [&](std::int64_t at) { return at < 0 ? std::max<std::int64_t>(0, at + size) : std::min(at, size); };
      a.starts[k] = clip(a.starts[k]);
      a.ends[k] = std::max(clip(a.ends[k]), a.starts[k]);
      if (a.steps[k] < 1) c.fail(fmt::format("steps must be at least 1, got {} for axis {}; flip reverses", a.steps[k], k));
      a.steps[k] = std::min(a.steps[k], std::max<std::int64_t>(size, 1));
    }
    c.result({c.in(0).dtype, Shape(sizes_of(a))});
  }
  static Literal eval(const EvalContext& c, const Attrs& a) {
    const Ints strides = c.in(0).shape().strides();
    return gather_from(c.in(0), sizes_of(a), [&](const Index& index) {
      std::int64_t from = 0;
      for (std::size_t k = 0; k < index.size(); ++k) from += (a.starts[k] + index[k] * a.steps[k]) * strides[k];
      return from;
    });
  }
  static void grad(GradContext& g, const Attrs& a) {
    g.give(0, [&] {
      Ints after, interior;
      for (std::size_t k = 0; k < a.starts.size(); ++k) {
        const std::int64_t m = g.out().shape()[static_cast<int>(k)], covered = m == 0 ? 0 : (m - 1) * a.steps[k] + 1;
        after.push_back(g.in().shape()[static_cast<int>(k)] - a.starts[k] - covered);
        interior.push_back(a.steps[k] - 1);
      }
      return pad(g.dy(), a.starts, after, 0, interior);
    });
  }
  static std::vector<Sample> samples() {
    return {sample({floats({6, 3, 5})}, Attrs{{1, 0, 2}, {5, 3, 5}, {2, 1, 1}}), sample({floats({7})}, Attrs{{-3}, {100}, {}}), sample({floats({4, 4})}, Attrs{{1}, {3}, {}}),
            sample({floats({8, 1})}, Attrs{{0, 0}, {8, 1}, {3, 1}}), sample({floats({3})}, Attrs{{2}, {1}, {}})};
  }
};

struct Pad : Family {
  struct Attrs {
    Ints before, after, interior;
    double value = 0;
    static void fields(auto&& f, auto& a) {
      f("before", a.before, "elements added before, per axis", Field::required);
      f("after", a.after, "elements added behind, per axis", Field::required);
      f("interior", a.interior, "elements added between neighbours, per axis; empty: none");
      f("value", a.value, "value of the added elements");
    }
  };
  static constexpr OpInfo info{"pad", "(x) -> y", "x surrounded (and, with `interior`, spread) by a constant.", "Pad"};
  static Ints sizes_of(const Shape& shape, const Attrs& a) {
    Ints sizes;
    for (int k = 0; k < shape.rank(); ++k) sizes.push_back(a.before[k] + a.after[k] + shape[k] + std::max<std::int64_t>(0, shape[k] - 1) * a.interior[k]);
    return sizes;
  }
  static void infer(InferContext& c, Attrs& a) {
    const auto rank = static_cast<std::size_t>(c.shape(0).rank());
    if (a.interior.empty()) a.interior.resize(rank, 0);
    if (a.before.size() != rank || a.after.size() != rank || a.interior.size() != rank)
      c.fail(fmt::format("before, after and interior need {} entries each ({})", rank, c.describe_inputs()));
    constexpr std::int64_t kMost = std::int64_t{1} << 30;
    for (const Ints* list : {&a.before, &a.after, &a.interior})
      for (const std::int64_t n : *list)
        if (n < 0 || n > kMost) c.fail(fmt::format("a pad must be between 0 and {}, got {}; slice removes elements", kMost, n));
    if (!is_float(c.in(0).dtype) && (a.value != std::floor(a.value) || std::fabs(a.value) > 0x1p53)) c.fail(fmt::format("the value {} does not fit {}", a.value, c.describe_inputs()));
    for (const std::int64_t size : c.shape(0))
      if (size > kMost) c.fail(fmt::format("an axis is too long to be padded ({})", c.describe_inputs()));
    c.result({c.in(0).dtype, Shape(sizes_of(c.shape(0), a))});
  }
  static Literal eval(const EvalContext& c, const Attrs& a) {
    const Shape& from = c.in(0).shape();
    const Ints strides = from.strides();
    const auto source = [&](const Index& index) -> std::int64_t {
      std::int64_t flat = 0;
      for (int k = 0; k < from.rank(); ++k) {
        const std::int64_t at = index[k] - a.before[k], pitch = a.interior[k] + 1;
        if (at < 0 || at % pitch != 0 || at / pitch >= from[k]) return -1;
        flat += at / pitch * strides[k];
      }
      return flat;
    };
    return gather_from(c.in(0), sizes_of(from, a), source, a.value);
  }
  static void grad(GradContext& g, const Attrs& a) {
    g.give(0, [&] {
      Ints ends, steps;
      for (int k = 0; k < g.in().rank(); ++k) {
        const std::int64_t size = g.in().shape()[k];
        steps.push_back(a.interior[k] + 1);
        ends.push_back(a.before[k] + (size == 0 ? 0 : (size - 1) * steps.back() + 1));
      }
      return slice(g.dy(), a.before, ends, steps);
    });
  }
  static std::vector<Sample> samples() {
    return {sample({floats({2, 3, 4})}, Attrs{{0, 0, 1}, {0, 3, 2}, {}, 0.5}), sample({floats({3, 3})}, Attrs{{1, 0}, {0, 2}, {2, 1}, 0}), sample({floats({1})}, Attrs{{2}, {2}, {}, -1}),
            sample({floats({0})}, Attrs{{2}, {1}, {}, 3})};
  }
};

struct Flip : Family {
  using Attrs = AxesAttrs;
  static constexpr OpInfo info{"flip", "(x) -> y", "The order of the elements reversed along the axes."};
  static void infer(InferContext& c, Attrs& a) {
    a.axes = a.axes.empty() ? Ints{} : c.axes(a.axes, c.shape(0).rank());
    c.result(c.in(0));
  }
  static Literal eval(const EvalContext& c, const Attrs& a) {
    const Shape& shape = c.in(0).shape();
    const Ints strides = shape.strides();
    return gather_from(c.in(0), shape, [&](Index index) {
      for (const std::int64_t axis : a.axes) index[axis] = shape[static_cast<int>(axis)] - 1 - index[axis];
      return flat_of(index, strides);
    });
  }
  static void grad(GradContext& g, const Attrs& a) {
    g.give(0, [&] { return flip(g.dy(), a.axes); });
  }
  static std::vector<Sample> samples() { return {sample({floats({3, 4})}, Attrs{{1}}), sample({floats({2, 3, 2})}, Attrs{{0, -1}}), sample({floats({1})}, Attrs{{0}})}; }
};

struct Concat : Family {
  using Attrs = AxisAttrs;
  static constexpr OpInfo info{"concat", "(xs...) -> y", "Tensors joined along an axis.", "Concat"};
  static void infer(InferContext& c, Attrs& a) {
    a.axis = c.axis(a.axis, c.shape(0).rank());
    const auto axis = static_cast<int>(a.axis);
    std::int64_t total = 0;
    for (int i = 0; i < c.count(); ++i) {
      c.require_same_dtype(0, i);
      if (c.shape(i).rank() != c.shape(0).rank() || !(c.shape(i).with(axis, 0) == c.shape(0).with(axis, 0)))
        c.fail(fmt::format("shapes differ beside axis {}: {}", a.axis, c.describe_inputs()));
      total += c.shape(i)[axis];
      if (total > Shape::kMaxElements) c.fail(fmt::format("too many elements along axis {}: {} tensors such as {}", a.axis, c.count(), c.in(i).str()));
    }
    c.result({c.in(0).dtype, c.shape(0).with(axis, total)});
  }
  static Literal eval(const EvalContext& c, const Attrs& a) {
    const auto axis = static_cast<int>(a.axis);
    Literal out(c.result_type());
    const Ints strides = out.shape().strides();
    std::int64_t offset = 0;
    for (int i = 0; i < c.count(); ++i) {
      const Literal& in = c.in(i);
      for_each_index(in.shape(), [&](const Index& index, std::int64_t flat) {
        const std::int64_t to = flat_of(index, strides) + offset * strides[axis];
        if (out.is_float()) out.f()[to] = in.f()[flat];
        else out.i()[to] = in.i()[flat];
      });
      offset += in.shape()[axis];
    }
    return out;
  }
  static void grad(GradContext& g, const Attrs& a) {
    std::int64_t offset = 0;
    for (int i = 0; i < g.count(); ++i) {
      const std::int64_t size = g.in(i).dim(static_cast<int>(a.axis));
      g.give(i, [&] { return slice_axis(g.dy(), a.axis, offset, offset + size); });
      offset += size;
    }
  }
  static std::vector<Sample> samples() {
    return {sample({floats({2, 3}), floats({2, 1}), floats({2, 4})}, Attrs{1}), sample({floats({2}), floats({3})}, Attrs{0}), sample({floats({3, 3})}, Attrs{-1}),
            sample({floats({2, 0}), floats({2, 2})}, Attrs{1})};
  }
};

struct Stack : Family {
  using Attrs = AxisAttrs;
  static constexpr OpInfo info{"stack", "(xs...) -> y", "Tensors of one shape joined along a new axis."};
  static constexpr bool kSugar = true;
  static void infer(InferContext& c, Attrs& a) {
    a.axis = c.axis(a.axis, c.shape(0).rank() + 1);
    for (int i = 0; i < c.count(); ++i)
      if (c.in(i) != c.in(0)) c.fail("types differ: " + c.describe_inputs());
    c.result({c.in(0).dtype, c.shape(0).insert(static_cast<int>(a.axis), c.count())});
  }
  static Tensor expand(const ExpandContext& c, const Attrs& a) {
    std::vector<Tensor> parts;
    for (const Tensor& x : c.all()) parts.push_back(unsqueeze(x, a.axis));
    return concat(parts, a.axis);
  }
  static std::vector<Sample> samples() { return {sample({floats({2, 3}), floats({2, 3})}, Attrs{1}), sample({floats({}), floats({})}, Attrs{0})}; }
};

struct Split : Family {
  struct Attrs {
    Ints sizes;
    std::int64_t axis = 0;
    static void fields(auto&& f, auto& a) {
      f("sizes", a.sizes, "size of each piece", Field::required);
      f("axis", a.axis, "the axis");
    }
  };
  static constexpr OpInfo info{"split", "(x) -> pieces", "x cut along an axis into pieces of the given sizes.", "Split"};
  static constexpr bool kSugar = true;
  static void infer(InferContext& c, Attrs& a) {
    a.axis = c.axis(a.axis, c.shape(0).rank());
    const auto axis = static_cast<int>(a.axis);
    Shape(a.sizes.size() <= Shape::kMaxRank ? a.sizes : Ints{});  // no negative sizes
    std::int64_t total = 0;
    for (const std::int64_t size : a.sizes) {
      if (size < 0 || size > c.shape(0)[axis]) total = -1;
      if (total >= 0) total += size;
    }
    if (total != c.shape(0)[axis]) c.fail(fmt::format("sizes [{}] do not add up to axis {} of {}", fmt::join(a.sizes, ","), a.axis, c.describe_inputs()));
    for (const std::int64_t size : a.sizes) c.result({c.in(0).dtype, c.shape(0).with(axis, size)});
  }
  static std::vector<Tensor> expand(const ExpandContext& c, const Attrs& a) {
    std::vector<Tensor> pieces;
    std::int64_t offset = 0;
    for (const std::int64_t size : a.sizes) {
      pieces.push_back(slice_axis(c.in(0), a.axis, offset, offset + size));
      offset += size;
    }
    return pieces;
  }
  static std::vector<Sample> samples() { return {sample({floats({4, 6})}, Attrs{{2, 3, 1}, 1}), sample({floats({3})}, Attrs{{3}, 0})}; }
};

struct Tile : Family {
  struct Attrs {
    Ints repeats;
    static void fields(auto&& f, auto& a) { f("repeats", a.repeats, "copies per axis; more entries than axes add leading axes", Field::required); }
  };
  static constexpr OpInfo info{"tile", "(x) -> y", "x repeated as a whole along each axis.", "Tile"};
  static constexpr bool kSugar = true;
  static Ints aligned(const Shape& shape, const Attrs& a) {
    Ints sizes(a.repeats.size() - static_cast<std::size_t>(shape.rank()), 1);
    sizes.insert(sizes.end(), shape.begin(), shape.end());
    return sizes;
  }
  static void infer(InferContext& c, Attrs& a) {
    if (std::ssize(a.repeats) < c.shape(0).rank() || std::ssize(a.repeats) > 4) c.fail(fmt::format("{} repeats given for {} (at most 4 axes)", a.repeats.size(), c.describe_inputs()));
    const Shape counts(a.repeats);
    Ints sizes = aligned(c.shape(0), a);
    for (std::size_t k = 0; k < sizes.size(); ++k)
      if (__builtin_mul_overflow(sizes[k], a.repeats[k], &sizes[k])) c.fail("too many elements");
    c.result({c.in(0).dtype, Shape(sizes)});
  }
  // [a, b] -> [1, a, 1, b] -> [r0, a, r1, b] -> [r0 a, r1 b]
  static Tensor expand(const ExpandContext& c, const Attrs& a) {
    Ints spread, repeated, merged;
    const Ints sizes = aligned(c.in(0).shape(), a);
    for (std::size_t k = 0; k < sizes.size(); ++k) {
      spread.insert(spread.end(), {1, sizes[k]});
      repeated.insert(repeated.end(), {a.repeats[k], sizes[k]});
      merged.push_back(a.repeats[k] * sizes[k]);
    }
    return reshape(broadcast_to(reshape(c.in(0), spread), repeated), merged);
  }
  static std::vector<Sample> samples() { return {sample({floats({2, 3, 4})}, Attrs{{2, 1, 3}}), sample({floats({3})}, Attrs{{2, 2}}), sample({floats({1})}, Attrs{{1}})}; }
};

struct Iota : Family {
  struct Attrs {
    Ints shape;
    std::int64_t axis = 0;
    DType dtype = i64;
    static void fields(auto&& f, auto& a) {
      f("shape", a.shape, "sizes", Field::required);
      f("axis", a.axis, "the axis that counts");
      f("dtype", a.dtype, "element type");
    }
  };
  static constexpr OpInfo info{"iota", "() -> y", "0, 1, 2, ... along one axis.", "Range"};
  static void infer(InferContext& c, Attrs& a) {
    const Shape shape(a.shape);
    a.axis = c.axis(a.axis, shape.rank());
    if (a.dtype == boolean) c.fail("cannot count in bool");
    c.result({a.dtype, shape});
  }
  static Literal eval(const EvalContext& c, const Attrs& a) {
    Literal out(c.result_type());
    for_each_index(out.shape(), [&](const Index& index, std::int64_t flat) {
      if (out.is_float()) out.f()[flat] = static_cast<double>(index[a.axis]);
      else out.i()[flat] = wrap_to(a.dtype, index[a.axis]);
    });
    return out;
  }
  static std::vector<Sample> samples() { return {sample({}, Attrs{{3, 2}, 0, i64}), sample({}, Attrs{{2, 5}, -1, f32})}; }
};

struct DiagonalAttrs {
  std::int64_t diagonal = 0;
  static void fields(auto&& f, auto& a) { f("diagonal", a.diagonal, "0: the main one; positive: above, negative: below"); }
};
void infer_matrix(InferContext& c, DiagonalAttrs& a) {
  if (c.shape(0).rank() < 2) c.fail("needs at least 2 axes: " + c.describe_inputs());
  constexpr std::int64_t kMost = std::int64_t{1} << 60;
  if (a.diagonal > kMost || a.diagonal < -kMost) c.fail(fmt::format("diagonal {} is out of range", a.diagonal));
  c.result(c.in(0));
}
// column - row of each element of the last two axes, in the shape of x
Tensor column_minus_row(const Tensor& x) {
  const Shape plane{x.dim(-2), x.dim(-1)};
  return broadcast_to(iota_beside(x, plane, 1) - iota_beside(x, plane, 0), x.shape());
}

struct Tril : Family {
  using Attrs = DiagonalAttrs;
  static constexpr OpInfo info{"tril", "(x) -> y", "The lower triangle of the last two axes, zeros above `diagonal`."};
  static void infer(InferContext& c, Attrs& a) { infer_matrix(c, a); }
  static Tensor expand(const ExpandContext& c, const Attrs& a) { return where(le(column_minus_row(c.in(0)), a.diagonal), c.in(0), 0); }
  static void grad(GradContext& g, const Attrs& a) { g.give(0, [&] { return tril(g.dy(), a.diagonal); }); }
  static std::vector<Sample> samples() { return {sample({floats({4, 5})}, Attrs{-1}), sample({floats({3, 3})}, Attrs{0}), sample({floats({2, 1, 3})}, Attrs{1})}; }
};

struct Triu : Family {
  using Attrs = DiagonalAttrs;
  static constexpr OpInfo info{"triu", "(x) -> y", "The upper triangle of the last two axes, zeros below `diagonal`.", "Trilu"};
  static void infer(InferContext& c, Attrs& a) { infer_matrix(c, a); }
  static Tensor expand(const ExpandContext& c, const Attrs& a) { return where(ge(column_minus_row(c.in(0)), a.diagonal), c.in(0), 0); }
  static void grad(GradContext& g, const Attrs& a) { g.give(0, [&] { return triu(g.dy(), a.diagonal); }); }
  static std::vector<Sample> samples() { return {sample({floats({4, 5})}, Attrs{1}), sample({floats({3, 3})}, Attrs{0}), sample({floats({2, 1, 3})}, Attrs{-1})}; }
};

std::vector<Operand> operands(std::string_view op, const std::vector<Tensor>& xs, pantala::Where where) {
  if (xs.empty()) ir::throw_type_error(op, ir::provenance(where), "needs at least one tensor");
  std::vector<Operand> result;
  for (const Tensor& x : xs) result.emplace_back(x, where);
  return result;
}

}  // namespace

std::vector<const OpDef*> movement_ops() {
  return family<Reshape, Permute, Transpose, BroadcastTo, Unsqueeze, Squeeze, Flatten, Slice, Pad, Flip, Concat, Stack, Split, Tile, Iota, Tril, Triu>();
}

}  // namespace pantala::ops

namespace pantala {

using namespace ops;

Tensor reshape(Operand x, const IntList& shape) { return x.tensor().shape().vec() == shape ? x.tensor() : make<Reshape>({x}, {shape}); }
Tensor permute(Operand x, const IntList& axes) {
  IntList same(axes.size());
  std::iota(same.begin(), same.end(), 0);
  return axes == same && std::ssize(axes) == x.tensor().rank() ? x.tensor() : make<Permute>({x}, {axes});
}
Tensor transpose(Operand x, std::int64_t a, std::int64_t b) { return make<Transpose>({x}, {a, b}); }
Tensor broadcast_to(Operand x, const Shape& shape) { return x.tensor().shape() == shape ? x.tensor() : make<BroadcastTo>({x}, {shape.vec()}); }
Tensor unsqueeze(Operand x, std::int64_t axis) { return make<Unsqueeze>({x}, {axis}); }
Tensor squeeze(Operand x, std::int64_t axis) { return make<Squeeze>({x}, {axis}); }
Tensor flatten(Operand x, std::int64_t first, std::int64_t last) { return make<Flatten>({x}, {first, last}); }
Tensor slice(Operand x, const IntList& starts, const IntList& ends, const IntList& steps) { return make<Slice>({x}, {starts, ends, steps}); }
Tensor slice_axis(Operand x, std::int64_t axis, std::int64_t start, std::int64_t end, std::int64_t step) {
  const Shape& shape = x.tensor().shape();
  const std::int64_t at = axis < 0 ? axis + shape.rank() : axis;
  if (at < 0 || at >= shape.rank()) ir::throw_type_error("slice", x.tensor().graph()->effective(ir::provenance(x.where())), fmt::format("axis {} is out of range for {}", axis, x.tensor().type().str()));
  IntList starts(shape.rank(), 0), ends = shape.vec(), steps(shape.rank(), 1);
  starts[at] = start, ends[at] = end, steps[at] = step;
  return slice(x, starts, ends, steps);
}
Tensor flip(Operand x, const IntList& axes) { return make<Flip>({x}, {axes}); }
Tensor concat(const std::vector<Tensor>& xs, std::int64_t axis, Where where) { return make<Concat>(operands("concat", xs, where), {axis}); }
Tensor stack(const std::vector<Tensor>& xs, std::int64_t axis, Where where) { return make<Stack>(operands("stack", xs, where), {axis}); }
std::vector<Tensor> split(Operand x, const IntList& sizes, std::int64_t axis) { return make_all<Split>({x}, {sizes, axis}); }
Tensor pad(Operand x, const IntList& before, const IntList& after, double value, const IntList& interior) { return make<Pad>({x}, {before, after, interior, value}); }
Tensor tile(Operand x, const IntList& repeats) { return make<Tile>({x}, {repeats}); }
Tensor tril(Operand x, std::int64_t diagonal) { return make<Tril>({x}, {diagonal}); }
Tensor triu(Operand x, std::int64_t diagonal) { return make<Triu>({x}, {diagonal}); }
Tensor iota_beside(const Tensor& x, const Shape& shape, std::int64_t axis, DType dtype) {
  return x.graph()->append(op_def<Iota>(), {}, ir::to_values(Iota::Attrs{shape.vec(), axis, dtype}), {})[0];
}

}  // namespace pantala
