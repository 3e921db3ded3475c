// Resize and Upsample: axis by axis, each new element is a weighted sum of old ones (its taps). The
// taps follow from sizes and options alone; they are constants of the graph.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "onnx/adapters.h"

namespace pantala::onnx {

namespace {

constexpr std::int64_t kMostTaps = 256;

struct Options {
  std::string mode, transform, nearest, aspect;
  double cubic = -0.75, outside_value = 0;
  bool exclude_outside = false, antialias = false;
  bool shrinks_by_ceil = false;  // nearest, along an axis that becomes shorter
};

struct Axis {
  int axis = 0;
  std::int64_t in = 0, out = 0;
  double scale = 1;           // as given, or out / in
  double start = 0, end = 1;  // of the region, for tf_crop_and_resize
};

Options read_options(const Node& node) {
  const bool old = node.op() == "Upsample" || node.opset() < 11;
  Options o;
  o.mode = node.attribute("mode", std::string("nearest"));
  o.transform = node.attribute("coordinate_transformation_mode",
                               std::string(old ? "asymmetric" : "half_pixel"));
  o.nearest = node.attribute("nearest_mode", std::string(old ? "floor" : "round_prefer_floor"));
  o.shrinks_by_ceil = node.op() == "Resize" && node.opset() == 10;
  o.aspect = node.attribute("keep_aspect_ratio_policy", std::string("stretch"));
  o.cubic = node.attribute("cubic_coeff_a", -0.75);
  o.outside_value = node.attribute("extrapolation_value", 0.0);
  o.exclude_outside = node.attribute("exclude_outside", std::int64_t{0}) != 0;
  o.antialias = node.attribute("antialias", std::int64_t{0}) != 0;
  if (o.mode != "nearest" && o.mode != "linear" && o.mode != "cubic")
    node.fail(fmt::format("mode '{}'", o.mode));
  return o;
}

// --- where and how large
std::vector<double> numbers(const Node& node, int input) {
  return node.has(input) ? node.constant(input)->to_doubles() : std::vector<double>();
}

std::vector<double> read_scales(const Node& node) {
  if (node.op() == "Upsample" && node.opset() < 9) return node.numbers("scales");
  return numbers(node, node.op() == "Upsample" || node.opset() < 11 ? 1 : 2);
}

// One scale for all axes, from the sizes that are wanted.
void keep_aspect(std::vector<Axis>& axes, const std::string& policy) {
  double scale = policy == "not_larger" ? INFINITY : 0;
  for (const Axis& a : axes) {
    const double own = static_cast<double>(a.out) / static_cast<double>(a.in);
    scale = policy == "not_larger" ? std::min(scale, own) : std::max(scale, own);
  }
  for (Axis& a : axes) {
    a.scale = scale;
    a.out = static_cast<std::int64_t>(std::floor(scale * static_cast<double>(a.in) + 0.5));
  }
}

std::vector<Axis> read_axes(const Node& node, const Options& o) {
  const Shape& shape = node.shape(0);
  IntList which(static_cast<std::size_t>(shape.rank()));
  std::iota(which.begin(), which.end(), 0);
  which = node.integers("axes", which);
  const std::vector<double> scales = read_scales(node);
  const bool newer = node.op() == "Resize" && node.opset() >= 11;
  const IntList sizes = newer && node.has(3) ? node.integers(3) : IntList{};
  const std::vector<double> region = newer ? numbers(node, 1) : std::vector<double>();
  const std::size_t given = sizes.empty() ? scales.size() : sizes.size();
  if (given != which.size())
    node.fail(fmt::format("{} sizes or scales for {} axes", given, which.size()));
  std::vector<Axis> axes;
  for (std::size_t k = 0; k < which.size(); ++k) {
    Axis a{.axis = node.axis(which[k], shape.rank())};
    a.in = shape[a.axis];
    // The product is rounded to f32, as the scale is: 5 elements times 1.4f are 7.
    const double length = sizes.empty() ? static_cast<float>(static_cast<double>(a.in) * scales[k])
                                        : static_cast<double>(a.in);
    if (sizes.empty() && !(scales[k] > 0 && length < 0x1p40))
      node.fail(fmt::format("a scale of {}", scales[k]));
    a.out = sizes.empty() ? static_cast<std::int64_t>(std::floor(length)) : sizes[k];
    if (a.in < 1 || a.out < 0)
      node.fail(fmt::format("an axis of {} cannot become {}", a.in, a.out));
    a.scale = sizes.empty() ? scales[k] : static_cast<double>(a.out) / static_cast<double>(a.in);
    if (region.size() == 2 * which.size()) a.start = region[k], a.end = region[k + which.size()];
    axes.push_back(a);
  }
  if (!sizes.empty() && o.aspect != "stretch") keep_aspect(axes, o.aspect);
  return axes;
}

double coordinate(const Node& node, const Options& o, const Axis& a, std::int64_t position) {
  // The length before it is rounded to a number of elements.
  const auto x = static_cast<double>(position), in = static_cast<double>(a.in),
             length = in * a.scale;
  if (o.transform == "half_pixel") return (x + 0.5) / a.scale - 0.5;
  if (o.transform == "half_pixel_symmetric") {
    const double adjustment = static_cast<double>(a.out) / length;
    return in / 2 * (1 - adjustment) + (x + 0.5) / a.scale - 0.5;
  }
  if (o.transform == "pytorch_half_pixel") return length != 1 ? (x + 0.5) / a.scale - 0.5 : -0.5;
  if (o.transform == "align_corners") return length != 1 ? x * (in - 1) / (length - 1) : 0;
  if (o.transform == "asymmetric") return static_cast<float>(x / a.scale);
  if (o.transform == "tf_half_pixel_for_nn") return (x + 0.5) / a.scale;
  if (o.transform == "tf_crop_and_resize")
    return length != 1 ? a.start * (in - 1) + x * (a.end - a.start) * (in - 1) / (length - 1)
                       : 0.5 * (a.start + a.end) * (in - 1);
  node.fail(fmt::format("coordinate_transformation_mode '{}'", o.transform));
}

// --- taps
struct Tap {
  std::int64_t index;
  double weight;
};

double nearest_index(const Node& node, const Options& o, const Axis& a, double at) {
  if (o.shrinks_by_ceil && a.scale < 1) return std::ceil(at);
  if (o.nearest == "round_prefer_floor") return std::ceil(at - 0.5);
  if (o.nearest == "round_prefer_ceil") return std::floor(at + 0.5);
  if (o.nearest == "floor") return std::floor(at);
  if (o.nearest == "ceil") return std::ceil(at);
  node.fail(fmt::format("nearest_mode '{}'", o.nearest));
}

double cubic_weight(double distance, double a) {
  const double d = std::fabs(distance);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

// Neighbours within the reach of the kernel, which is stretched where a smaller picture must not
// alias.
std::vector<Tap> taps_at(const Node& node, const Options& o, const Axis& a, double at) {
  const std::int64_t last = a.in - 1;
  const auto inside = [&](double index) {
    return static_cast<std::int64_t>(std::clamp<double>(index, 0, static_cast<double>(last)));
  };
  if (o.mode == "nearest") return {{inside(nearest_index(node, o, a, at)), 1}};
  const double reach = o.mode == "linear" ? 1 : 2;
  const double stretch = o.antialias ? std::min(a.scale, 1.0) : 1;
  const double base = std::floor(at), first = std::floor(-reach / stretch) + 1;
  std::vector<Tap> taps;
  double total = 0;
  for (double k = first; k <= 1 - first; ++k) {
    const double distance = (base + k - at) * stretch;
    double weight = o.mode == "linear" ? std::max(0.0, 1 - std::fabs(distance))
                                       : cubic_weight(distance, o.cubic);
    const bool outside = base + k < 0 || base + k > static_cast<double>(last);
    if (o.exclude_outside && outside) weight = 0;
    taps.push_back({inside(base + k), weight});
    total += weight;
  }
  for (Tap& tap : taps) tap.weight /= total;
  return taps;
}

// A vector along one axis, to be broadcast.
Shape along(int rank, int axis, std::int64_t size) {
  return Shape(IntList(static_cast<std::size_t>(rank), 1)).with(axis, size);
}

Tensor resize_axis(Node& node, const Tensor& x, const Options& o, const Axis& a) {
  const double stretch = o.antialias ? std::min(a.scale, 1.0) : 1;
  const auto count = static_cast<std::int64_t>(
      o.mode == "nearest" ? 1
                          : std::min(2 * std::ceil((o.mode == "linear" ? 1 : 2) / stretch), 1e6));
  if (count > kMostTaps) node.unsupported(fmt::format("a sum of {} neighbours", count));
  node.spend_elements(a.out < (1 << 30) ? a.out * count * 4 : a.out);
  std::vector<std::vector<Tap>> taps;
  for (std::int64_t k = 0; k < a.out; ++k)
    taps.push_back(taps_at(node, o, a, coordinate(node, o, a, k)));
  Tensor y;
  for (std::size_t t = 0; t < (taps.empty() ? 0 : taps[0].size()); ++t) {
    std::vector<std::int64_t> index;
    std::vector<double> weight;
    for (const std::vector<Tap>& all : taps)
      index.push_back(all[t].index), weight.push_back(all[t].weight);
    const Tensor taken = take(x, node.index_constant(index, {a.out}), a.axis);
    if (o.mode == "nearest") return taken;
    const Tensor part = taken * node.graph().constant(Literal::floats(
                                    along(x.rank(), a.axis, a.out), weight, x.dtype()));
    y = y.valid() ? y + part : part;
  }
  return y.valid() ? y : slice_axis(x, a.axis, 0, 0);
}

// Where a region reaches beyond x there is a value of its own.
Tensor fill_outside(Node& node, const Tensor& y, const Options& o, const Axis& a) {
  std::vector<std::int64_t> outside;
  for (std::int64_t k = 0; k < a.out; ++k) {
    const double at = coordinate(node, o, a, k);
    outside.push_back(at < 0 || at > static_cast<double>(a.in - 1));
  }
  const Tensor mask =
      node.graph().constant(Literal::ints(along(y.rank(), a.axis, a.out), outside, boolean));
  return where(mask, full_like(y, o.outside_value), y);
}

void convert_resize(Node& node) {
  const Options options = read_options(node);
  const DType dtype = node.dtype(0);
  const bool exact = is_float(dtype) || options.mode == "nearest";
  Tensor y = exact ? node.tensor(0) : cast(node.tensor(0), f64);
  const std::vector<Axis> axes = read_axes(node, options);
  const bool crops = options.transform == "tf_crop_and_resize";
  for (const Axis& a : axes)
    if (a.in != a.out || a.scale != 1 || crops) y = resize_axis(node, y, options, a);
  if (crops)
    for (const Axis& a : axes) y = fill_outside(node, y, options, a);
  node.give(exact ? y : cast(y, dtype));
}

constexpr Adapter kResizeAdapters[] = {
    {"Resize", convert_resize},
    {"Upsample", convert_resize},
};

}  // namespace

std::span<const Adapter> resize_adapters() { return kResizeAdapters; }

}  // namespace pantala::onnx
