// Cutting, padding and joining.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "onnx/adapters.h"

namespace pantala::onnx {

namespace {

void convert_concat(Node& node) {
  if (!node.has_attribute("axis") && node.opset() >= 4)
    node.fail("the attribute 'axis' is missing");
  node.give(
      concat(node.tensors(), node.axis(node.attribute("axis", std::int64_t{1}), node.rank(0))));
}

IntList split_sizes(const Node& node, std::int64_t size) {
  const IntList given = node.integers(1, "split");
  if (!given.empty()) return given;
  const std::int64_t count = node.attribute("num_outputs", std::int64_t{node.results()});
  if (count != node.results())
    node.fail(fmt::format("{} outputs are not {}", node.results(), count));
  // The last piece may be shorter.
  const std::int64_t piece = (size + count - 1) / count;
  IntList sizes;
  for (std::int64_t k = 0, left = size; k < count; ++k) {
    sizes.push_back(std::min(piece, left));
    left -= sizes.back();
  }
  return sizes;
}

void convert_split(Node& node) {
  const int axis = node.axis(node.attribute("axis", std::int64_t{0}), node.rank(0));
  const IntList sizes = split_sizes(node, node.shape(0)[axis]);
  if (std::ssize(sizes) != node.results())
    node.fail(fmt::format("{} sizes for {} results", sizes.size(), node.results()));
  const std::vector<Tensor> pieces = split(node.tensor(0), sizes, axis);
  for (int k = 0; k < node.results(); ++k) node.give(k, pieces[static_cast<std::size_t>(k)]);
}

// --- slices
struct SliceLists {
  IntList starts, ends, axes, steps;
};
// Attributes up to version 9, then inputs.
SliceLists read_slice(const Node& node) {
  SliceLists s;
  if (node.opset() < 10) {
    s = {node.integers("starts", {}), node.integers("ends", {}), node.integers("axes", {}), {}};
  } else {
    s = {node.integers(1), node.integers(2), node.has(3) ? node.integers(3) : IntList{},
         node.has(4) ? node.integers(4) : IntList{}};
  }
  if (s.axes.empty()) {
    s.axes.resize(s.starts.size());
    std::iota(s.axes.begin(), s.axes.end(), 0);
  }
  if (s.steps.empty()) s.steps.assign(s.starts.size(), 1);
  if (s.ends.size() != s.starts.size() || s.axes.size() != s.starts.size() ||
      s.steps.size() != s.starts.size())
    node.fail(fmt::format("{} starts, {} ends, {} axes and {} steps", s.starts.size(),
                          s.ends.size(), s.axes.size(), s.steps.size()));
  return s;
}

std::int64_t from_end(std::int64_t at, std::int64_t size) { return at < 0 ? at + size : at; }

// Backwards is forwards through the reversed axis.
Tensor slice_backwards(const Tensor& x, int axis, std::int64_t start, std::int64_t end,
                       std::int64_t step) {
  const std::int64_t size = x.dim(axis);
  const std::int64_t first = std::clamp<std::int64_t>(from_end(start, size), -1, size - 1);
  const std::int64_t last =
      std::clamp<std::int64_t>(end < -size ? -1 : from_end(end, size), -1, size - 1);
  const std::int64_t width = step == INT64_MIN ? INT64_MAX : -step;
  return slice_axis(flip(x, {axis}), axis, size - 1 - first,
                    std::max(size - 1 - last, size - 1 - first), width);
}

void convert_slice(Node& node) {
  const SliceLists s = read_slice(node);
  Tensor x = node.tensor(0);
  std::vector<bool> seen(static_cast<std::size_t>(x.rank()), false);
  for (std::size_t k = 0; k < s.starts.size(); ++k) {
    const int axis = node.axis(s.axes[k], x.rank());
    if (seen[static_cast<std::size_t>(axis)]) node.fail(fmt::format("axis {} is cut twice", axis));
    seen[static_cast<std::size_t>(axis)] = true;
    if (s.steps[k] == 0) node.fail("a step is 0");
    const bool whole = s.starts[k] == 0 && s.ends[k] >= x.dim(axis) && s.steps[k] == 1;
    if (whole) continue;
    x = s.steps[k] > 0 ? slice_axis(x, axis, s.starts[k], s.ends[k], s.steps[k])
                       : slice_backwards(x, axis, s.starts[k], s.ends[k], s.steps[k]);
  }
  node.give(x);
}

// --- padding
struct Pads {
  IntList before, after;  // per axis; negative ones cut
};
Pads read_pads(const Node& node, int rank) {
  const IntList given = node.opset() < 11 ? node.integers("pads", {}) : node.integers(1);
  IntList axes(static_cast<std::size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  if (node.opset() >= 18 && node.has(3)) axes = node.integers(3);
  if (given.size() != 2 * axes.size())
    node.fail(fmt::format("{} pads for {} axes", given.size(), axes.size()));
  Pads pads{IntList(static_cast<std::size_t>(rank), 0), IntList(static_cast<std::size_t>(rank), 0)};
  for (std::size_t k = 0; k < axes.size(); ++k) {
    const auto axis = static_cast<std::size_t>(node.axis(axes[k], rank));
    pads.before[axis] = given[k];
    pads.after[axis] = given[k + axes.size()];
    for (const std::int64_t pad : {pads.before[axis], pads.after[axis]})
      if (pad < -Shape::kMaxElements || pad > Shape::kMaxElements)
        node.fail(fmt::format("a padding of {}", pad));
  }
  return pads;
}

Tensor pad_constant(const Tensor& x, const Pads& pads, double value) {
  IntList starts, ends, before, after;
  for (int k = 0; k < x.rank(); ++k) {
    const std::int64_t first = pads.before[static_cast<std::size_t>(k)],
                       last = pads.after[static_cast<std::size_t>(k)];
    starts.push_back(std::min(std::max<std::int64_t>(0, -first), x.dim(k)));
    ends.push_back(std::max(starts.back(), x.dim(k) + std::min<std::int64_t>(0, last)));
    before.push_back(std::max<std::int64_t>(0, first));
    after.push_back(std::max<std::int64_t>(0, last));
  }
  return pad(slice(x, starts, ends), before, after, value);
}

// Which element of an axis stands at a position outside of it.
std::int64_t source_position(std::int64_t at, std::int64_t size, const std::string& mode) {
  if (mode == "edge") return std::clamp<std::int64_t>(at, 0, size - 1);
  if (mode == "wrap") return ((at % size) + size) % size;
  if (size == 1) return 0;
  const std::int64_t period = 2 * (size - 1), folded = ((at % period) + period) % period;
  return folded < size ? folded : period - folded;
}

void convert_pad(Node& node) {
  const std::string mode = node.attribute("mode", std::string("constant"));
  const Tensor given = node.tensor(0);
  Tensor x = given.dtype() == boolean ? cast(given, u8) : given;
  const Pads pads = read_pads(node, x.rank());
  if (mode == "constant") {
    const double value = node.opset() < 11 ? node.attribute("value", 0.0)
                         : node.has(2)     ? node.number(2)
                                           : 0;
    node.give(cast(pad_constant(x, pads, value), given.dtype()));
    return;
  }
  if (mode != "reflect" && mode != "edge" && mode != "wrap")
    node.fail(fmt::format("mode '{}'", mode));
  for (int axis = 0; axis < x.rank(); ++axis) {
    const std::int64_t size = x.dim(axis), first = pads.before[static_cast<std::size_t>(axis)],
                       last = pads.after[static_cast<std::size_t>(axis)];
    if (first == 0 && last == 0) continue;
    if (size == 0) node.fail("an empty axis has no elements to repeat");
    node.spend_elements(std::max<std::int64_t>(0, size + first + last));
    std::vector<std::int64_t> index;
    for (std::int64_t at = -first; at < size + last; ++at)
      index.push_back(source_position(at, size, mode));
    x = take(x, node.index_constant(index, {std::ssize(index)}), axis);
  }
  node.give(cast(x, given.dtype()));
}

constexpr Adapter kSlicingAdapters[] = {
    {"Concat", convert_concat},
    {"Split", convert_split},
    {"Slice", convert_slice},
    {"Pad", convert_pad},
};

}  // namespace

std::span<const Adapter> slicing_adapters() { return kSlicingAdapters; }

}  // namespace pantala::onnx
