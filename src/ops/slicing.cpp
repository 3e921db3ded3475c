// Cutting, padding and joining. The adjoint of a slice is a pad with elements between, the adjoint
// of a pad is a slice with steps.
#include "ops/slicing.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text.h"
#include "ops/define.h"
#include "ops/indexing.h"

namespace pantala::ops {
namespace {

using op::AxesAttrs;
using op::AxisAttrs;

struct Family {
  static constexpr std::string_view kFamily = "slicing";
};

struct Slice : op::Slice, Family {
  static constexpr OpInfo info{name, "(x) -> y",
                               "Every step-th element of [start, end) along each axis.", "Slice"};
  static Ints sizes_of(const Attrs& a) {
    Ints sizes;
    for (std::size_t k = 0; k < a.starts.size(); ++k)
      sizes.push_back(
          std::max<std::int64_t>(0, (a.ends[k] - a.starts[k] + a.steps[k] - 1) / a.steps[k]));
    return sizes;
  }
  static void infer(InferContext& c, Attrs& a) {
    const auto rank = static_cast<std::size_t>(c.shape(0).rank());
    if (a.starts.size() != a.ends.size() || a.starts.size() > rank ||
        a.steps.size() > a.starts.size())
      c.fail(fmt::format("{} starts, {} ends and {} steps given for {}", a.starts.size(),
                         a.ends.size(), a.steps.size(), c.describe_inputs()));
    a.steps.resize(rank, 1);
    for (std::size_t k = 0; k < rank; ++k) {
      const std::int64_t size = c.shape(0)[static_cast<int>(k)];
      if (k >= a.starts.size()) a.starts.push_back(0), a.ends.push_back(size);
      const auto clip = [&](std::int64_t at) {
        return at < 0 ? std::max<std::int64_t>(0, at + size) : std::min(at, size);
      };
      a.starts[k] = clip(a.starts[k]);
      a.ends[k] = std::max(clip(a.ends[k]), a.starts[k]);
      if (a.steps[k] < 1)
        c.fail(fmt::format("steps must be at least 1, got {} for axis {}; flip reverses",
                           a.steps[k], k));
      a.steps[k] = std::min(a.steps[k], std::max<std::int64_t>(size, 1));
    }
    c.result({c.in(0).dtype, Shape(sizes_of(a))});
  }
  static Literal eval(const EvalContext& c, const Attrs& a) {
    const Ints strides = c.in(0).shape().strides();
    return gather_from(c.in(0), sizes_of(a), [&](const Index& index) {
      std::int64_t from = 0;
      for (std::size_t k = 0; k < index.size(); ++k)
        from += (a.starts[k] + index[k] * a.steps[k]) * strides[k];
      return from;
    });
  }
  static void grad(GradContext& g, const Attrs& a) {
    g.give(0, [&] {
      Ints after, interior;
      for (std::size_t k = 0; k < a.starts.size(); ++k) {
        const std::int64_t m = g.out().shape()[static_cast<int>(k)],
                           covered = m == 0 ? 0 : (m - 1) * a.steps[k] + 1;
        after.push_back(g.in().shape()[static_cast<int>(k)] - a.starts[k] - covered);
        interior.push_back(a.steps[k] - 1);
      }
      return pad(g.dy(), a.starts, after, 0, interior);
    });
  }
  static std::vector<Sample> samples() {
    return {sample({floats({6, 3, 5})}, Attrs{{1, 0, 2}, {5, 3, 5}, {2, 1, 1}}),
            sample({floats({7})}, Attrs{{-3}, {100}, {}}),
            sample({floats({4, 4})}, Attrs{{1}, {3}, {}}),
            sample({floats({8, 1})}, Attrs{{0, 0}, {8, 1}, {3, 1}}),
            sample({floats({3})}, Attrs{{2}, {1}, {}})};
  }
};

struct Pad : op::Pad, Family {
  static constexpr OpInfo info{name, "(x) -> y",
                               "x surrounded (and, with `interior`, spread) by a constant.", "Pad"};
  static Ints sizes_of(const Shape& shape, const Attrs& a) {
    Ints sizes;
    for (int k = 0; k < shape.rank(); ++k)
      sizes.push_back(a.before[k] + a.after[k] + shape[k] +
                      std::max<std::int64_t>(0, shape[k] - 1) * a.interior[k]);
    return sizes;
  }
  static void infer(InferContext& c, Attrs& a) {
    const auto rank = static_cast<std::size_t>(c.shape(0).rank());
    if (a.interior.empty()) a.interior.resize(rank, 0);
    if (a.before.size() != rank || a.after.size() != rank || a.interior.size() != rank)
      c.fail(fmt::format("before, after and interior need {} entries each ({})", rank,
                         c.describe_inputs()));
    constexpr std::int64_t kMost = std::int64_t{1} << 30;
    for (const Ints* list : {&a.before, &a.after, &a.interior})
      for (const std::int64_t n : *list)
        if (n < 0 || n > kMost)
          c.fail(fmt::format("a pad must be between 0 and {}, got {}; slice removes elements",
                             kMost, n));
    if (!is_float(c.in(0).dtype) && (a.value != std::floor(a.value) || std::fabs(a.value) > 0x1p53))
      c.fail(fmt::format("the value {} does not fit {}", a.value, c.describe_inputs()));
    for (const std::int64_t size : c.shape(0))
      if (size > kMost)
        c.fail(fmt::format("an axis is too long to be padded ({})", c.describe_inputs()));
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
    return {sample({floats({2, 3, 4})}, Attrs{{0, 0, 1}, {0, 3, 2}, {}, 0.5}),
            sample({floats({3, 3})}, Attrs{{1, 0}, {0, 2}, {2, 1}, 0}),
            sample({floats({1})}, Attrs{{2}, {2}, {}, -1}),
            sample({floats({0})}, Attrs{{2}, {1}, {}, 3})};
  }
};

struct Flip : op::Flip, Family {
  static constexpr OpInfo info{name, "(x) -> y",
                               "The order of the elements reversed along the axes."};
  static void infer(InferContext& c, Attrs& a) {
    a.axes = a.axes.empty() ? Ints{} : c.axes(a.axes, c.shape(0).rank());
    c.result(c.in(0));
  }
  static Literal eval(const EvalContext& c, const Attrs& a) {
    const Shape& shape = c.in(0).shape();
    const Ints strides = shape.strides();
    return gather_from(c.in(0), shape, [&](Index index) {
      for (const std::int64_t axis : a.axes)
        index[axis] = shape[static_cast<int>(axis)] - 1 - index[axis];
      return flat_of(index, strides);
    });
  }
  static void grad(GradContext& g, const Attrs& a) {
    g.give(0, [&] { return flip(g.dy(), a.axes); });
  }
  static std::vector<Sample> samples() {
    return {sample({floats({3, 4})}, Attrs{{1}}), sample({floats({2, 3, 2})}, Attrs{{0, -1}}),
            sample({floats({1})}, Attrs{{0}})};
  }
};

struct Concat : op::Concat, Family {
  static constexpr OpInfo info{name, "(xs...) -> y", "Tensors joined along an axis.", "Concat"};
  static void infer(InferContext& c, Attrs& a) {
    a.axis = c.axis(a.axis, c.shape(0).rank());
    const auto axis = static_cast<int>(a.axis);
    std::int64_t total = 0;
    for (int i = 0; i < c.count(); ++i) {
      c.require_same_dtype(0, i);
      if (c.shape(i).rank() != c.shape(0).rank() ||
          !(c.shape(i).with(axis, 0) == c.shape(0).with(axis, 0)))
        c.fail(fmt::format("shapes differ beside axis {}: {}", a.axis, c.describe_inputs()));
      total += c.shape(i)[axis];
      if (total > Shape::kMaxElements)
        c.fail(fmt::format("too many elements along axis {}: {} tensors such as {}", a.axis,
                           c.count(), c.in(i).str()));
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
        if (out.is_float())
          out.f()[to] = in.f()[flat];
        else
          out.i()[to] = in.i()[flat];
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
    return {sample({floats({2, 3}), floats({2, 1}), floats({2, 4})}, Attrs{1}),
            sample({floats({2}), floats({3})}, Attrs{0}), sample({floats({3, 3})}, Attrs{-1}),
            sample({floats({2, 0}), floats({2, 2})}, Attrs{1})};
  }
};

struct Stack : Family {
  using Attrs = AxisAttrs;
  static constexpr OpInfo info{"stack", "(xs...) -> y",
                               "Tensors of one shape joined along a new axis."};
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
  static std::vector<Sample> samples() {
    return {sample({floats({2, 3}), floats({2, 3})}, Attrs{1}),
            sample({floats({}), floats({})}, Attrs{0})};
  }
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
  static constexpr OpInfo info{"split", "(x) -> pieces",
                               "x cut along an axis into pieces of the given sizes.", "Split"};
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
    if (total != c.shape(0)[axis])
      c.fail(fmt::format("sizes [{}] do not add up to axis {} of {}", fmt::join(a.sizes, ","),
                         a.axis, c.describe_inputs()));
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
  static std::vector<Sample> samples() {
    return {sample({floats({4, 6})}, Attrs{{2, 3, 1}, 1}), sample({floats({3})}, Attrs{{3}, 0})};
  }
};

struct Tile : Family {
  struct Attrs {
    Ints repeats;
    static void fields(auto&& f, auto& a) {
      f("repeats", a.repeats, "copies per axis; more entries than axes add leading axes",
        Field::required);
    }
  };
  static constexpr OpInfo info{"tile", "(x) -> y", "x repeated as a whole along each axis.",
                               "Tile"};
  static constexpr bool kSugar = true;
  static Ints aligned(const Shape& shape, const Attrs& a) {
    Ints sizes(a.repeats.size() - static_cast<std::size_t>(shape.rank()), 1);
    sizes.insert(sizes.end(), shape.begin(), shape.end());
    return sizes;
  }
  static void infer(InferContext& c, Attrs& a) {
    if (std::ssize(a.repeats) < c.shape(0).rank())
      c.fail(fmt::format("{} repeats given for {}", a.repeats.size(), c.describe_inputs()));
    const Shape counts(a.repeats);  // checks their number and signs
    Ints sizes = aligned(c.shape(0), a);
    for (std::size_t k = 0; k < sizes.size(); ++k)
      if (__builtin_mul_overflow(sizes[k], a.repeats[k], &sizes[k])) c.fail("too many elements");
    c.result({c.in(0).dtype, Shape(sizes)});
  }
  // Axis by axis, so that any rank fits: [outer, size * inner] -> [outer, 1, size * inner] ->
  // [outer, r, size * inner]
  static Tensor expand(const ExpandContext& c, const Attrs& a) {
    Ints sizes = aligned(c.in(0).shape(), a);
    Tensor x = reshape(c.in(0), sizes);
    for (std::size_t k = 0; k < sizes.size(); ++k) {
      if (a.repeats[k] == 1) continue;
      const auto axis = static_cast<std::ptrdiff_t>(k);
      const std::int64_t outer = Shape(Ints(sizes.begin(), sizes.begin() + axis)).numel(),
                         inner = Shape(Ints(sizes.begin() + axis, sizes.end())).numel();
      sizes[k] *= a.repeats[k];
      x = reshape(broadcast_to(reshape(x, {outer, 1, inner}), {outer, a.repeats[k], inner}), sizes);
    }
    return x;
  }
  static std::vector<Sample> samples() {
    return {sample({floats({2, 3, 4})}, Attrs{{2, 1, 3}}), sample({floats({3})}, Attrs{{2, 2}}),
            sample({floats({1})}, Attrs{{1}}),
            sample({floats({2, 1, 3, 1, 2})}, Attrs{{2, 1, 1, 3, 2}})};
  }
};

std::vector<Operand> operands(std::string_view op, const std::vector<Tensor>& xs,
                              pantala::Where where) {
  if (xs.empty()) ir::throw_type_error(op, ir::provenance(where), "needs at least one tensor");
  std::vector<Operand> result;
  for (const Tensor& x : xs) result.emplace_back(x, where);
  return result;
}

}  // namespace

std::vector<const OpDef*> slicing_ops() {
  return family<Slice, Pad, Flip, Concat, Stack, Split, Tile>();
}

}  // namespace pantala::ops

namespace pantala {

using namespace ops;

Tensor slice(Operand x, const IntList& starts, const IntList& ends, const IntList& steps) {
  return make<Slice>({x}, {starts, ends, steps});
}
Tensor slice_axis(Operand x, std::int64_t axis, std::int64_t start, std::int64_t end,
                  std::int64_t step) {
  const Shape& shape = x.tensor().shape();
  const std::int64_t at = axis < 0 ? axis + shape.rank() : axis;
  if (at < 0 || at >= shape.rank())
    ir::throw_type_error(
        "slice", x.tensor().graph()->effective(ir::provenance(x.where())),
        fmt::format("axis {} is out of range for {}", axis, x.tensor().type().str()));
  IntList starts(shape.rank(), 0), ends = shape.vec(), steps(shape.rank(), 1);
  starts[at] = start, ends[at] = end, steps[at] = step;
  return slice(x, starts, ends, steps);
}
Tensor flip(Operand x, const IntList& axes) { return make<Flip>({x}, {axes}); }
Tensor concat(const std::vector<Tensor>& xs, std::int64_t axis, Where where) {
  return make<Concat>(operands("concat", xs, where), {axis});
}
Tensor stack(const std::vector<Tensor>& xs, std::int64_t axis, Where where) {
  return make<Stack>(operands("stack", xs, where), {axis});
}
std::vector<Tensor> split(Operand x, const IntList& sizes, std::int64_t axis) {
  return make_all<Split>({x}, {sizes, axis});
}
Tensor pad(Operand x, const IntList& before, const IntList& after, double value,
           const IntList& interior) {
  return make<Pad>({x}, {before, after, interior, value});
}
Tensor tile(Operand x, const IntList& repeats) { return make<Tile>({x}, {repeats}); }

}  // namespace pantala
