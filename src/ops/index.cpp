// Reading and writing by index. There are three addressing forms, each a pair of a reading and a
// writing op that are adjoint to each other:
//  - slices along an axis: take and scatter_add;
//  - single elements: gather and scatter_add_elements (and scatter, which replaces);
//  - a window at a run-time place: dynamic_slice and update_slice.
//
// Indices are never negative; all of them are checked before anything is read or written.
#include "ops/index.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "ops/define.h"
#include "ops/indexing.h"

namespace pantala::ops {
namespace {

using AxisAttrs = op::IndexAttrs;

struct Family {
  static constexpr std::string_view kFamily = "index";
};

void require_index(const InferContext& c, int i) {
  if (c.in(i).dtype != i32 && c.in(i).dtype != i64)
    c.fail(fmt::format("{} must be i32 or i64, got {}", c.name_of(i), c.in(i).str()));
}

// Repeated targets add up, which bools cannot.
void require_addable(const InferContext& c) {
  if (c.in(0).dtype == boolean) c.fail("needs numbers: " + c.describe_inputs());
}

void check_indices(const Literal& index, std::int64_t size) {
  for_each_index(index.shape(), [&](const Index& at, std::int64_t flat) {
    const std::int64_t value = index.i()[flat];
    if (value >= 0 && value < size) return;
    throw ValueError(fmt::format("index {} at position [{}] is out of range [0, {})", value,
                                 fmt::join(at, ","), size));
  });
}

void copy_element(Literal& to, std::int64_t at, const Literal& from, std::int64_t k) {
  if (to.is_float())
    to.f()[at] = from.f()[k];
  else
    to.i()[at] = from.i()[k];
}

void add_element(Literal& to, std::int64_t at, const Literal& from, std::int64_t k) {
  if (to.is_float())
    to.f()[at] += from.f()[k];
  else
    to.i()[at] = wrap_to(to.dtype(), (Number::of(to.i()[at]) + Number::of(from.i()[k])).i);
}

// --- slices along an axis

// The index has any shape, and stands in the place of the axis.

Shape slices_shape(const Shape& x, const Shape& index, std::int64_t axis) {
  Ints sizes(x.begin(), x.begin() + axis);
  sizes.insert(sizes.end(), index.begin(), index.end());
  sizes.insert(sizes.end(), x.begin() + axis + 1, x.end());
  return Shape(sizes);
}

// Calls f(flat position in x, flat position in the slices) for every element that the index names,
// in the order of the slices.
template <class F>
void for_each_slice_element(const Shape& x, const Literal& index, std::int64_t axis, F&& f) {
  const std::int64_t size = x[static_cast<int>(axis)];
  check_indices(index, size);
  const std::int64_t inner = Shape(Ints(x.begin() + axis + 1, x.end())).numel(),
                     outer = Shape(Ints(x.begin(), x.begin() + axis)).numel();
  std::int64_t flat = 0;
  for (std::int64_t o = 0; o < outer; ++o)
    for (const std::int64_t row : index.i())
      for (std::int64_t k = 0; k < inner; ++k) f((o * size + row) * inner + k, flat++);
}

struct Take : op::Take, Family {
  static constexpr OpInfo info{
      name, "(x, index) -> y",
      "Slices of x along an axis; the shape of the index stands in the place of the axis.",
      "Gather"};
  static constexpr std::array<int, 1> kIndexInputs{1};
  static void infer(InferContext& c, Attrs& a) {
    require_index(c, 1);
    a.axis = c.axis(a.axis, c.shape(0).rank());
    c.result({c.in(0).dtype, slices_shape(c.shape(0), c.shape(1), a.axis)});
  }
  static Literal eval(const EvalContext& c, const Attrs& a) {
    Literal out(c.result_type());
    for_each_slice_element(c.in(0).shape(), c.in(1), a.axis, [&](std::int64_t at, std::int64_t k) {
      copy_element(out, k, c.in(0), at);
    });
    return out;
  }
  static void grad(GradContext& g, const Attrs& a) {
    g.give(0, [&] { return scatter_add(zeros_like(g.in(0)), g.in(1), g.dy(), a.axis); });
  }
  static std::vector<Sample> samples() {
    return {sample({floats({4, 6}), ints({5}, 0, 6)}, Attrs{1}),
            sample({floats({3, 3}), ints({2, 4}, 0, 3, i32)}, Attrs{0}),
            sample({floats({2, 5, 3}), ints({}, 0, 5)}, Attrs{-2}),
            sample({floats({1}), ints({1}, 0, 1)}, Attrs{0}),
            sample({floats({3, 2}), ints({0}, 0, 3)}, Attrs{0}),
            sample({floats({2, 3, 5}), ints({1, 7}, 0, 5)}, Attrs{2})};
  }
};

struct Embedding : Family {
  static constexpr OpInfo info{
      "embedding", "(weight, index) -> y",
      "Rows of the table weight [count, size]: [..., size] for an index [...].", "Gather"};
  static constexpr bool kSugar = true;
  static constexpr std::array<int, 1> kIndexInputs{1};
  static void infer(InferContext& c) {
    c.require_float(0);
    c.require_rank(0, 2);
    require_index(c, 1);
    c.result({c.in(0).dtype, slices_shape(c.shape(0), c.shape(1), 0)});
  }
  static Tensor expand(const ExpandContext& c) { return take(c.in(0), c.in(1), 0); }
  static std::vector<Sample> samples() {
    return {sample({floats({11, 4}), ints({2, 7}, 0, 11)}),
            sample({floats({3, 3}), ints({5}, 0, 3, i32)}),
            sample({floats({1, 2}), ints({}, 0, 1)})};
  }
};

struct ScatterAdd : op::ScatterAdd, Family {
  static constexpr OpInfo info{name, "(x, index, source) -> y",
                               "x with the slices of source added where the index names them: the "
                               "adjoint of take. Repeated indices add up, in order."};
  static constexpr std::array<int, 1> kIndexInputs{1};
  static void infer(InferContext& c, Attrs& a) {
    require_addable(c);
    require_index(c, 1);
    c.require_same_dtype(0, 2);
    a.axis = c.axis(a.axis, c.shape(0).rank());
    const Shape slices = slices_shape(c.shape(0), c.shape(1), a.axis);
    if (!(c.shape(2) == slices))
      c.fail(fmt::format("source must have shape {} for axis {}: {}", slices.str(), a.axis,
                         c.describe_inputs()));
    c.result(c.in(0));
  }
  static Literal eval(const EvalContext& c, const Attrs& a) {
    Literal out = c.in(0);
    for_each_slice_element(out.shape(), c.in(1), a.axis, [&](std::int64_t at, std::int64_t k) {
      add_element(out, at, c.in(2), k);
    });
    return out;
  }
  static void grad(GradContext& g, const Attrs& a) {
    g.give(0, [&] { return g.dy(); });
    g.give(2, [&] { return take(g.dy(), g.in(1), a.axis); });
  }
  static std::vector<Sample> samples() {
    return {sample({floats({6, 4}), ints({5}, 0, 6), floats({5, 4})}, Attrs{0}),
            sample({floats({3, 3}), ints({2, 2}, 0, 3, i32), floats({3, 2, 2})}, Attrs{-1}),
            sample({floats({2, 5, 3}), ints({}, 0, 5), floats({2, 3})}, Attrs{1}),
            sample({floats({1}), ints({3}, 0, 1), floats({3})}, Attrs{0}),
            sample({floats({4}), ints({0}, 0, 4), floats({0})}, Attrs{0})};
  }
};

// --- single elements

// The index has the rank of x, and every other coordinate is that of the index element itself.

void check_elements(InferContext& c, AxisAttrs& a) {
  require_index(c, 1);
  const Shape &x = c.shape(0), &index = c.shape(1);
  a.axis = c.axis(a.axis, x.rank());
  if (index.rank() != x.rank())
    c.fail("the index must have as many axes as x: " + c.describe_inputs());
  for (int k = 0; k < x.rank(); ++k)
    if (k != a.axis && index[k] > x[k])
      c.fail(
          fmt::format("axis {} of the index is longer than that of x: {}", k, c.describe_inputs()));
}

void check_source(InferContext& c) {
  c.require_same_dtype(0, 2);
  if (!(c.shape(2) == c.shape(1)))
    c.fail("source must have the shape of the index: " + c.describe_inputs());
}

// Calls f(flat position in x, flat position in the index) for every element of the index, in order.
template <class F>
void for_each_element(const Shape& x, const Literal& index, std::int64_t axis, F&& f) {
  check_indices(index, x[static_cast<int>(axis)]);
  const Ints strides = x.strides();
  for_each_index(index.shape(), [&](const Index& at, std::int64_t flat) {
    f(flat_of(at, strides) + (index.i()[flat] - at[axis]) * strides[axis], flat);
  });
}

struct Gather : op::Gather, Family {
  static constexpr OpInfo info{
      name, "(x, index) -> y",
      "y[i, j, ...] = x[index[i, j, ...], j, ...] for axis 0, and so on: one element per index.",
      "GatherElements"};
  static constexpr std::array<int, 1> kIndexInputs{1};
  static void infer(InferContext& c, Attrs& a) {
    check_elements(c, a);
    c.result({c.in(0).dtype, c.shape(1)});
  }
  static Literal eval(const EvalContext& c, const Attrs& a) {
    Literal out(c.result_type());
    for_each_element(c.in(0).shape(), c.in(1), a.axis,
                     [&](std::int64_t at, std::int64_t k) { copy_element(out, k, c.in(0), at); });
    return out;
  }
  static void grad(GradContext& g, const Attrs& a) {
    g.give(0, [&] { return scatter_add_elements(zeros_like(g.in(0)), g.in(1), g.dy(), a.axis); });
  }
  static std::vector<Sample> samples() {
    return {sample({floats({4, 6}), ints({4, 3}, 0, 6)}, Attrs{1}),
            sample({floats({3, 3}), ints({5, 2}, 0, 3, i32)}, Attrs{0}),
            sample({floats({2, 5, 3}), ints({1, 4, 3}, 0, 5)}, Attrs{-2}),
            sample({floats({1}), ints({1}, 0, 1)}, Attrs{0}),
            sample({floats({2, 3}), ints({2, 0}, 0, 3)}, Attrs{1})};
  }
};

std::vector<Sample> element_write_samples() {
  return {sample({floats({4, 6}), ints({4, 3}, 0, 6), floats({4, 3})}, AxisAttrs{1}),
          sample({floats({3, 3}), ints({5, 2}, 0, 3, i32), floats({5, 2})}, AxisAttrs{0}),
          sample({floats({2, 5, 3}), ints({1, 4, 3}, 0, 5), floats({1, 4, 3})}, AxisAttrs{-2}),
          sample({floats({1}), ints({1}, 0, 1), floats({1})}, AxisAttrs{0}),
          sample({floats({2, 3}), ints({2, 0}, 0, 3), floats({2, 0})}, AxisAttrs{1})};
}

struct ScatterAddElements : op::ScatterAddElements, Family {
  static constexpr OpInfo info{name, "(x, index, source) -> y",
                               "x with each element of source added where the index names it: the "
                               "adjoint of gather. Repeated indices add up, in order."};
  static constexpr std::array<int, 1> kIndexInputs{1};
  static void infer(InferContext& c, Attrs& a) {
    require_addable(c);
    check_elements(c, a);
    check_source(c);
    c.result(c.in(0));
  }
  static Literal eval(const EvalContext& c, const Attrs& a) {
    Literal out = c.in(0);
    for_each_element(out.shape(), c.in(1), a.axis,
                     [&](std::int64_t at, std::int64_t k) { add_element(out, at, c.in(2), k); });
    return out;
  }
  static void grad(GradContext& g, const Attrs& a) {
    g.give(0, [&] { return g.dy(); });
    g.give(2, [&] { return gather(g.dy(), g.in(1), a.axis); });
  }
  static std::vector<Sample> samples() { return element_write_samples(); }
};

// Which elements of the source are the last to be written at their place: number them, write the
// numbers, and read them back.
Tensor is_last_write(const Tensor& x, const Tensor& index, std::int64_t axis) {
  const Tensor number = reshape(iota_beside(index, {index.numel()}, 0), index.shape().vec());
  const Tensor winners = scatter(full_beside(number, x.shape(), 0), index, number, axis);
  return eq(gather(winners, index, axis), number);
}

struct Scatter : op::Scatter, Family {
  static constexpr OpInfo info{name, "(x, index, source) -> y",
                               "x with elements replaced by those of source where the index names "
                               "them; of repeated indices the last one stays.",
                               "ScatterElements"};
  static constexpr std::array<int, 1> kIndexInputs{1};
  static void infer(InferContext& c, Attrs& a) {
    check_elements(c, a);
    check_source(c);
    c.result(c.in(0));
  }
  static Literal eval(const EvalContext& c, const Attrs& a) {
    Literal out = c.in(0);
    for_each_element(out.shape(), c.in(1), a.axis,
                     [&](std::int64_t at, std::int64_t k) { copy_element(out, at, c.in(2), k); });
    return out;
  }
  // An element that a later one overwrote has no part in the result.
  static void grad(GradContext& g, const Attrs& a) {
    g.give(0, [&] { return scatter(g.dy(), g.in(1), zeros_like(g.in(2)), a.axis); });
    g.give(2, [&] {
      return where(is_last_write(g.in(0), g.in(1), a.axis), gather(g.dy(), g.in(1), a.axis), 0.0);
    });
  }
  static std::vector<Sample> samples() { return element_write_samples(); }
};

struct OneHot : op::OneHot, Family {
  static constexpr OpInfo info{name, "(index) -> y",
                               "A new last axis with a 1 at the index and 0 elsewhere.", "OneHot"};
  static constexpr std::array<int, 1> kIndexInputs{0};
  static void infer(InferContext& c, Attrs& a) {
    c.require_integer(0);
    if (a.classes < 1) c.fail(fmt::format("classes must be at least 1, got {}", a.classes));
    c.result({a.dtype, c.shape(0).insert(c.shape(0).rank(), a.classes)});
  }
  static Literal eval(const EvalContext& c, const Attrs& a) {
    const Literal& index = c.in(0);
    check_indices(index, a.classes);
    Literal out(c.result_type());
    for (std::int64_t k = 0; k < index.numel(); ++k) {
      const std::int64_t at = k * a.classes + index.i()[k];
      if (out.is_float())
        out.f()[at] = 1;
      else
        out.i()[at] = 1;
    }
    return out;
  }
  static std::vector<Sample> samples() {
    return {sample({ints({3, 4}, 0, 5)}, Attrs{5, i64}),
            sample({ints({6}, 0, 3, i32)}, Attrs{3, f32}),
            sample({ints({}, 0, 1)}, Attrs{1, boolean}),
            sample({ints({0, 2}, 0, 2, u8)}, Attrs{2, i32})};
  }
};

// --- a window whose place is known at run time

void require_position(const InferContext& c, int i) {
  require_index(c, i);
  c.require_rank(i, 0);
}

// The first element of the window; the window must lie inside the axis as a whole.
std::int64_t checked_position(const Literal& position, std::int64_t window, std::int64_t size) {
  const std::int64_t at = position.i()[0];
  if (at < 0 || at > size - window)
    throw ValueError(fmt::format(
        "position {} with {} elements is out of range of an axis of size {}", at, window, size));
  return at;
}

// Calls f(flat position in whole, flat position in window) for every element of the window.
template <class F>
void for_each_window_element(const Shape& whole, const Shape& window, std::int64_t axis,
                             const Literal& position, F&& f) {
  const auto k = static_cast<int>(axis);
  const std::int64_t start = checked_position(position, window[k], whole[k]);
  const Ints strides = whole.strides();
  for_each_index(window, [&](const Index& at, std::int64_t flat) {
    f(flat_of(at, strides) + start * strides[k], flat);
  });
}

struct DynamicSlice : op::DynamicSlice, Family {
  static constexpr OpInfo info{
      name, "(x, position) -> y",
      "`size` elements of an axis from a position that is known at run time."};
  static constexpr std::array<int, 1> kIndexInputs{1};
  static void infer(InferContext& c, Attrs& a) {
    require_position(c, 1);
    a.axis = c.axis(a.axis, c.shape(0).rank());
    const auto axis = static_cast<int>(a.axis);
    if (a.size < 0 || a.size > c.shape(0)[axis])
      c.fail(fmt::format("size {} does not fit axis {}: {}", a.size, a.axis, c.describe_inputs()));
    c.result({c.in(0).dtype, c.shape(0).with(axis, a.size)});
  }
  static Literal eval(const EvalContext& c, const Attrs& a) {
    Literal out(c.result_type());
    for_each_window_element(
        c.in(0).shape(), out.shape(), a.axis, c.in(1),
        [&](std::int64_t at, std::int64_t k) { copy_element(out, k, c.in(0), at); });
    return out;
  }
  static void grad(GradContext& g, const Attrs& a) {
    g.give(0, [&] { return update_slice(zeros_like(g.in(0)), g.dy(), g.in(1), a.axis); });
  }
  static std::vector<Sample> samples() {
    return {sample({floats({4, 6}), ints({}, 0, 4)}, Attrs{1, 3}),
            sample({floats({3, 3}), ints({}, 0, 3, i32)}, Attrs{0, 1}),
            sample({floats({2, 5, 3}), ints({}, 0, 1)}, Attrs{-2, 5}),
            sample({floats({1}), ints({}, 0, 1)}, Attrs{0, 1}),
            sample({floats({2, 3}), ints({}, 0, 4)}, Attrs{1, 0})};
  }
};

struct UpdateSlice : op::UpdateSlice, Family {
  static constexpr OpInfo info{
      name, "(x, update, position) -> y",
      "x with the update written over it, from a position that is known at run time."};
  static constexpr std::array<int, 1> kIndexInputs{2};
  static void infer(InferContext& c, Attrs& a) {
    c.require_same_dtype(0, 1);
    require_position(c, 2);
    a.axis = c.axis(a.axis, c.shape(0).rank());
    const auto axis = static_cast<int>(a.axis);
    if (c.shape(1).rank() != c.shape(0).rank() ||
        !(c.shape(1).with(axis, 0) == c.shape(0).with(axis, 0)) ||
        c.shape(1)[axis] > c.shape(0)[axis])
      c.fail(fmt::format(
          "the update must have the shape of x but for axis {}, which may be shorter: {}", a.axis,
          c.describe_inputs()));
    c.result(c.in(0));
  }
  static Literal eval(const EvalContext& c, const Attrs& a) {
    Literal out = c.in(0);
    for_each_window_element(
        out.shape(), c.in(1).shape(), a.axis, c.in(2),
        [&](std::int64_t at, std::int64_t k) { copy_element(out, at, c.in(1), k); });
    return out;
  }
  static void grad(GradContext& g, const Attrs& a) {
    g.give(0, [&] { return update_slice(g.dy(), zeros_like(g.in(1)), g.in(2), a.axis); });
    g.give(1, [&] {
      return dynamic_slice(g.dy(), g.in(2), a.axis, g.in(1).shape()[static_cast<int>(a.axis)]);
    });
  }
  static std::vector<Sample> samples() {
    return {sample({floats({4, 6}), floats({4, 3}), ints({}, 0, 4)}, Attrs{1}),
            sample({floats({3, 3}), floats({1, 3}), ints({}, 0, 3, i32)}, Attrs{0}),
            sample({floats({2, 5, 3}), floats({2, 5, 3}), ints({}, 0, 1)}, Attrs{-2}),
            sample({floats({1}), floats({1}), ints({}, 0, 1)}, Attrs{0}),
            sample({floats({2, 3}), floats({2, 0}), ints({}, 0, 4)}, Attrs{1})};
  }
};

}  // namespace

std::vector<const OpDef*> index_ops() {
  return family<Take, Embedding, ScatterAdd, Gather, ScatterAddElements, Scatter, OneHot,
                DynamicSlice, UpdateSlice>();
}

}  // namespace pantala::ops

namespace pantala {

using namespace ops;

Tensor take(Operand x, Operand index, std::int64_t axis) { return make<Take>({x, index}, {axis}); }
Tensor embedding(Operand weight, Operand index) { return make<Embedding>({weight, index}); }
Tensor gather(Operand x, Operand index, std::int64_t axis) {
  return make<Gather>({x, index}, {axis});
}
Tensor scatter_add(Operand x, Operand index, Operand source, std::int64_t axis) {
  return make<ScatterAdd>({x, index, source}, {axis});
}
Tensor scatter_add_elements(Operand x, Operand index, Operand source, std::int64_t axis) {
  return make<ScatterAddElements>({x, index, source}, {axis});
}
Tensor scatter(Operand x, Operand index, Operand source, std::int64_t axis) {
  return make<Scatter>({x, index, source}, {axis});
}
Tensor one_hot(Operand index, std::int64_t classes, DType dtype) {
  return make<OneHot>({index}, {classes, dtype});
}
Tensor dynamic_slice(Operand x, Operand position, std::int64_t axis, std::int64_t size) {
  return make<DynamicSlice>({x, position}, {axis, size});
}
Tensor update_slice(Operand x, Operand update, Operand position, std::int64_t axis) {
  return make<UpdateSlice>({x, update, position}, {axis});
}

}  // namespace pantala
