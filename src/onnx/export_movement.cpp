// Movement: other shapes, parts, and elements by index.
#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "onnx/export_rules.h"
#include "ops/index.h"
#include "ops/slicing.h"

namespace pantala::onnx {

namespace {

using ir::Ints;

void write_reshape(const NodeWriter& n) {
  n.result(n.reshaped(n.in(0), n.shape(0), n.result_type().shape));
}
void write_permute(const NodeWriter& n) {
  n.result(n.permuted(n.in(0), n.attributes<op::Permute>().axes));
}
void write_broadcast_to(const NodeWriter& n) {
  n.result(n.add("Expand", {n.in(0), n.writer.numbers(n.result_type().shape.vec())}));
}
void write_concat(const NodeWriter& n) {
  Names inputs;
  for (int k = 0; k < n.count(); ++k) inputs.push_back(n.in(k));
  n.result(n.add("Concat", inputs, {{"axis", n.attributes<op::Concat>().axis}}));
}

std::string sliced(const NodeWriter& n, const std::string& x, const Ints& starts, const Ints& ends,
                   const Ints& axes, const Ints& steps) {
  return n.add("Slice", {x, n.writer.numbers(starts), n.writer.numbers(ends),
                         n.writer.numbers(axes), n.writer.numbers(steps)});
}

// Only the axes that are cut are named.
void write_slice(const NodeWriter& n) {
  const auto [starts, ends, steps] = n.attributes<op::Slice>();
  Ints from, to, axes, pitch;
  for (std::size_t k = 0; k < starts.size(); ++k) {
    if (starts[k] == 0 && ends[k] >= n.shape(0)[static_cast<int>(k)] && steps[k] == 1) continue;
    from.push_back(starts[k]), to.push_back(ends[k]), pitch.push_back(steps[k]);
    axes.push_back(static_cast<std::int64_t>(k));
  }
  n.result(axes.empty() ? n.in(0) : sliced(n, n.in(0), from, to, axes, pitch));
}

void write_flip(const NodeWriter& n) {
  const Ints axes = n.attributes<op::Flip>().axes;
  if (axes.empty()) return n.result(n.in(0));
  n.result(sliced(n, n.in(0), Ints(axes.size(), -1),
                  Ints(axes.size(), std::numeric_limits<std::int64_t>::min()), axes,
                  Ints(axes.size(), -1)));
}

std::string padded(const NodeWriter& n, const std::string& x, const Ints& before,
                   const Ints& after) {
  Ints pads = before;
  pads.insert(pads.end(), after.begin(), after.end());
  if (std::all_of(pads.begin(), pads.end(), [](std::int64_t k) { return k == 0; })) return x;
  return n.add("Pad", {x, n.writer.numbers(pads),
                       n.writer.scalar(n.attributes<op::Pad>().value, n.type(0).dtype)});
}

// Elements between neighbours: each element gets a row of its own, [outer, size, 1 + interior,
// inner], and the last ones are cut off.
std::string spread_axis(const NodeWriter& n, const std::string& x, const Shape& shape, int axis,
                        std::int64_t interior) {
  const std::int64_t outer = Shape(Ints(shape.begin(), shape.begin() + axis)).numel(),
                     inner = Shape(Ints(shape.begin() + axis + 1, shape.end())).numel(),
                     size = shape[axis], rows = size * (1 + interior);
  const Shape flat{outer, size, 1, inner}, wide{outer, size, 1 + interior, inner},
      merged{outer, rows, inner}, cut{outer, rows - interior, inner};
  const std::string spread =
      padded(n, n.reshaped(x, shape, flat), {0, 0, 0, 0}, {0, 0, interior, 0});
  const std::string all =
      sliced(n, n.reshaped(spread, wide, merged), {0}, {rows - interior}, {1}, {1});
  return n.reshaped(all, cut, shape.with(axis, rows - interior));
}

void write_pad(const NodeWriter& n) {
  const auto attrs = n.attributes<op::Pad>();
  std::string x = n.in(0);
  Shape shape = n.shape(0);
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const std::int64_t between = attrs.interior[static_cast<std::size_t>(axis)];
    if (between == 0 || shape[axis] < 2) continue;
    x = spread_axis(n, x, shape, axis, between);
    shape = shape.with(axis, shape[axis] + (shape[axis] - 1) * between);
  }
  n.result(padded(n, x, attrs.before, attrs.after));
}

void write_triangle(const NodeWriter& n, std::int64_t upper) {
  const std::string diagonal =
      n.writer.constant(Literal::integer(n.attributes<op::DiagonalAttrs>().diagonal));
  n.result(n.add("Trilu", {n.in(0), diagonal}, {{"upper", upper}}));
}
void write_tril(const NodeWriter& n) { write_triangle(n, 0); }
void write_triu(const NodeWriter& n) { write_triangle(n, 1); }

// --- elements by index
std::int64_t axis_of(const NodeWriter& n) { return n.attributes<op::IndexAttrs>().axis; }

void write_take(const NodeWriter& n) {
  n.result(n.add("Gather", {n.in(0), n.in(1)}, {{"axis", axis_of(n)}}));
}
void write_gather(const NodeWriter& n) {
  n.result(n.add("GatherElements", {n.in(0), n.in(1)}, {{"axis", axis_of(n)}}));
}
void write_scatter(const NodeWriter& n) {
  n.result(n.add("ScatterElements", {n.in(0), n.in(1), n.in(2)}, {{"axis", axis_of(n)}}));
}
void write_scatter_add_elements(const NodeWriter& n) {
  n.result(n.add("ScatterElements", {n.in(0), n.in(1), n.in(2)},
                 {{"axis", axis_of(n)}, {"reduction", std::string("add")}}));
}
void write_one_hot(const NodeWriter& n) {
  const auto [classes, dtype] = n.attributes<op::OneHot>();
  const Literal values =
      is_float(dtype) ? Literal::floats({2}, {0, 1}, dtype) : Literal::ints({2}, {0, 1}, dtype);
  n.result(n.add("OneHot",
                 {n.in(0), n.writer.constant(Literal::integer(classes)), n.writer.constant(values)},
                 {{"axis", std::int64_t{-1}}}));
}

// position, position + 1, ...
std::string positions(const NodeWriter& n, int input, std::int64_t count) {
  Ints steps(static_cast<std::size_t>(count));
  std::iota(steps.begin(), steps.end(), 0);
  std::string start = n.in(input);
  if (n.type(input).dtype != i64)
    start = n.add("Cast", {start}, {{"to", std::int64_t{pb::TensorProto::INT64}}});
  return n.add("Add", {start, n.writer.numbers(steps)});
}
void write_dynamic_slice(const NodeWriter& n) {
  const auto [axis, size] = n.attributes<op::DynamicSlice>();
  n.result(n.add("Gather", {n.in(0), positions(n, 1, size)}, {{"axis", axis}}));
}
void write_update_slice(const NodeWriter& n) {
  const std::int64_t written = n.attributes<op::UpdateSlice>().axis;
  const auto axis = static_cast<int>(written);
  const Shape& update = n.shape(1);
  Ints column(static_cast<std::size_t>(update.rank()), 1);
  column[static_cast<std::size_t>(axis)] = update[axis];
  const std::string rows = n.reshaped(positions(n, 2, update[axis]), {update[axis]}, column),
                    index = n.add("Expand", {rows, n.writer.numbers(update.vec())});
  n.result(n.add("ScatterElements", {n.in(0), index, n.in(1)}, {{"axis", written}}));
}

constexpr std::array kMovementRules{
    ExportRule{"reshape", write_reshape},
    ExportRule{"permute", write_permute},
    ExportRule{"broadcast_to", write_broadcast_to},
    ExportRule{"concat", write_concat},
    ExportRule{"slice", write_slice},
    ExportRule{"flip", write_flip},
    ExportRule{"pad", write_pad},
    ExportRule{"tril", write_tril},
    ExportRule{"triu", write_triu},
    ExportRule{"take", write_take},
    ExportRule{"gather", write_gather},
    ExportRule{"scatter", write_scatter},
    ExportRule{"scatter_add_elements", write_scatter_add_elements, 16},
    ExportRule{"one_hot", write_one_hot},
    ExportRule{"dynamic_slice", write_dynamic_slice},
    ExportRule{"update_slice", write_update_slice},
};

}  // namespace

std::span<const ExportRule> movement_export_rules() { return kMovementRules; }

}  // namespace pantala::onnx
