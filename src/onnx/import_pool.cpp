// Pools. Those of planes that Pantala's own ops can say are these ops; any other (asymmetric
// padding, dilation, other numbers of axes) is taken axis by axis, as maximum, sum or mean of the
// slices that lie under each element of the window.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "onnx/adapters.h"
#include "onnx/windows.h"

namespace pantala::onnx {

namespace {

enum class Combine { max, sum };

// A slice is a node or two of the graph, which counts as so many elements.
constexpr std::int64_t kMostSlices = 1024, kElementsPerSlice = 128;

struct Pool {
  Windows windows;
  IntList sizes, outputs;  // of the spatial axes
  bool round_up = false;
};

// A last window that would start behind x and the padding before it is left out.
std::int64_t output_size(const Node& node, const Windows& w, std::size_t k, std::int64_t size,
                         bool round_up) {
  const std::int64_t room = size + w.before[k] + w.after[k] - w.extent(k);
  if (size < 1 || room < 0)
    node.fail(fmt::format("a window of {} does not fit an axis of {}", w.extent(k), size));
  std::int64_t outputs =
      (round_up ? (room + w.stride[k] - 1) / w.stride[k] : room / w.stride[k]) + 1;
  if (round_up && (outputs - 1) * w.stride[k] >= size + w.before[k]) --outputs;
  return outputs;
}

Pool read_pool(const Node& node) {
  Pool pool;
  pool.sizes = spatial_sizes(node, node.shape(0));
  if (!node.has_attribute("kernel_shape")) node.fail("the attribute 'kernel_shape' is missing");
  pool.windows = read_windows(node, node.integers("kernel_shape", {}), pool.sizes);
  pool.round_up = node.attribute("ceil_mode", std::int64_t{0}) != 0;
  for (std::size_t k = 0; k < pool.sizes.size(); ++k)
    pool.outputs.push_back(output_size(node, pool.windows, k, pool.sizes[k], pool.round_up));
  return pool;
}

// Whether max_pool2d and avg_pool2d have it.
bool is_plain(const Pool& pool) {
  const Windows& w = pool.windows;
  if (w.axes() > 2 || w.dilated() || !w.symmetric()) return false;
  for (std::size_t k = 0; k < w.kernel.size(); ++k)
    if (w.before[k] > w.kernel[k] / 2) return false;
  return true;
}

// A line is a plane of one column.
Tensor as_plane(const Tensor& x) {
  return x.rank() == 3 ? reshape(x, {x.dim(0), x.dim(1), x.dim(2), 1}) : x;
}
Tensor from_plane(const Tensor& y, int rank) {
  return rank == 3 ? reshape(y, {y.dim(0), y.dim(1), y.dim(2)}) : y;
}
PoolOptions plane_options(const Pool& pool) {
  PoolOptions options{pool.windows.stride, pool.windows.before, pool.round_up, true};
  if (pool.windows.axes() == 1) {
    options.stride.push_back(1);
    options.padding.push_back(0);
  }
  return options;
}
IntList plane_kernel(const Pool& pool) {
  IntList kernel = pool.windows.kernel;
  if (kernel.size() == 1) kernel.push_back(1);
  return kernel;
}

// One axis: the slices under each element of the window, combined.
Tensor pool_axis(Node& node, const Tensor& x, const Pool& pool, std::size_t k, Combine combine) {
  const Windows& w = pool.windows;
  const int axis = static_cast<int>(k) + 2;
  if (w.kernel[k] > kMostSlices) node.unsupported(fmt::format("a window of {}", w.kernel[k]));
  node.spend_elements(w.kernel[k] * kElementsPerSlice);
  const std::int64_t reach = (pool.outputs[k] - 1) * w.stride[k] + w.extent(k);
  IntList before(static_cast<std::size_t>(x.rank()), 0), after = before;
  before[k + 2] = w.before[k];
  after[k + 2] = std::max<std::int64_t>(0, reach - pool.sizes[k] - w.before[k]);
  const double outside = combine == Combine::max ? -std::numeric_limits<double>::infinity() : 0;
  const Tensor padded = before[k + 2] + after[k + 2] > 0 ? pad(x, before, after, outside) : x;
  Tensor result;
  for (std::int64_t j = 0; j < w.kernel[k]; ++j) {
    const std::int64_t start = j * w.dilation[k];
    const Tensor piece = slice_axis(padded, axis, start,
                                    start + (pool.outputs[k] - 1) * w.stride[k] + 1, w.stride[k]);
    result = !result.valid()           ? piece
             : combine == Combine::max ? maximum(result, piece)
                                       : result + piece;
  }
  return result;
}

Tensor pool_axes(Node& node, Tensor x, const Pool& pool, Combine combine) {
  for (std::size_t k = 0; k < pool.sizes.size(); ++k) x = pool_axis(node, x, pool, k, combine);
  return x;
}

// How many elements each window covers along an axis; with the padding, but not what sticks out
// behind it.
std::vector<double> covered(const Pool& pool, std::size_t k, bool with_padding) {
  const Windows& w = pool.windows;
  const std::int64_t low = with_padding ? -w.before[k] : 0;
  const std::int64_t high = pool.sizes[k] + (with_padding ? w.after[k] : 0);
  std::vector<double> counts;
  for (std::int64_t o = 0; o < pool.outputs[k]; ++o) {
    const std::int64_t at = o * w.stride[k] - w.before[k], step = w.dilation[k];
    const std::int64_t first = at >= low ? 0 : (low - at + step - 1) / step;
    const std::int64_t last = at < high ? std::min(w.kernel[k] - 1, (high - 1 - at) / step) : -1;
    counts.push_back(static_cast<double>(std::max<std::int64_t>(1, last - first + 1)));
  }
  return counts;
}

Tensor mean_by_axes(Node& node, const Tensor& x, const Pool& pool, bool with_padding) {
  Tensor y = pool_axes(node, x, pool, Combine::sum);
  for (std::size_t k = 0; k < pool.sizes.size(); ++k) {
    node.spend_elements(pool.outputs[k]);
    IntList sizes(static_cast<std::size_t>(x.rank()), 1);
    sizes[k + 2] = pool.outputs[k];
    y = y / node.graph().constant(
                Literal::floats(Shape(sizes), covered(pool, k, with_padding), x.dtype()));
  }
  return y;
}

// Positions count through the whole tensor, planes one behind the other.
Tensor positions_in_tensor(Node& node, const Tensor& in_plane, const Shape& x, bool column_major) {
  const std::int64_t height = x[2], width = x.rank() == 4 ? x[3] : 1;
  Tensor position = cast(in_plane, i64);
  if (column_major) {
    const Tensor column = mod(position, width);
    const Tensor row = cast(cast(position - column, f64) / static_cast<double>(width), i64);
    position = column * height + row;
  }
  const Tensor planes =
      iota_beside(node.graph().constant(0, {}, i64), {x[0] * x[1]}, 0) * (height * width);
  return position + reshape(planes, {x[0], x[1], 1, 1});
}

void convert_max_pool(Node& node) {
  const Pool pool = read_pool(node);
  const DType dtype = node.dtype(0);
  const Tensor x = is_float(dtype) ? node.tensor(0) : cast(node.tensor(0), f64);
  if (!is_plain(pool)) {
    if (node.wants(1)) node.unsupported("positions of maxima in windows of this kind");
    const Tensor y = pool_axes(node, x, pool, Combine::max);
    node.give(is_float(dtype) ? y : cast(y, dtype));
    return;
  }
  const auto [y, positions] =
      max_pool2d_with_indices(as_plane(x), plane_kernel(pool), plane_options(pool));
  node.give(is_float(dtype) ? from_plane(y, x.rank()) : cast(from_plane(y, x.rank()), dtype));
  if (node.wants(1)) {
    const bool column_major = node.attribute("storage_order", std::int64_t{0}) != 0;
    node.give(1,
              from_plane(positions_in_tensor(node, positions, x.shape(), column_major), x.rank()));
  }
}

void convert_average_pool(Node& node) {
  const Pool pool = read_pool(node);
  const Tensor x = node.tensor(0);
  const bool with_padding = node.attribute("count_include_pad", std::int64_t{0}) != 0;
  if (!is_plain(pool)) {
    node.give(mean_by_axes(node, x, pool, with_padding));
    return;
  }
  PoolOptions options = plane_options(pool);
  options.count_include_pad = with_padding;
  node.give(from_plane(avg_pool2d(as_plane(x), plane_kernel(pool), options), x.rank()));
}

Tensor power_sum_root(const Tensor& sum, double p) {
  return p == 1 ? sum : p == 2 ? sqrt(sum) : pow_scalar(sum, 1 / p);
}
Tensor magnitude_power(const Tensor& x, double p) {
  return p == 1 ? abs(x) : p == 2 ? square(x) : pow_scalar(abs(x), p);
}

void convert_lp_pool(Node& node) {
  const auto p = static_cast<double>(node.attribute("p", std::int64_t{2}));
  const Tensor powers = magnitude_power(node.tensor(0), p);
  node.give(power_sum_root(pool_axes(node, powers, read_pool(node), Combine::sum), p));
}

IntList spatial_axes(const Node& node) {
  IntList axes(spatial_sizes(node, node.shape(0)).size());
  std::iota(axes.begin(), axes.end(), 2);
  return axes;
}
void convert_global_average_pool(Node& node) {
  node.give(mean(node.tensor(0), spatial_axes(node), true));
}
void convert_global_max_pool(Node& node) {
  node.give(amax(node.tensor(0), spatial_axes(node), true));
}
void convert_global_lp_pool(Node& node) {
  const auto p = static_cast<double>(node.attribute("p", std::int64_t{2}));
  node.give(power_sum_root(sum(magnitude_power(node.tensor(0), p), spatial_axes(node), true), p));
}

constexpr Adapter kPoolAdapters[] = {
    {"MaxPool", convert_max_pool, false},
    {"AveragePool", convert_average_pool, false, true},
    {"LpPool", convert_lp_pool, false, true},
    {"GlobalAveragePool", convert_global_average_pool, false, true},
    {"GlobalMaxPool", convert_global_max_pool, false},
    {"GlobalLpPool", convert_global_lp_pool, false, true},
};

}  // namespace

std::span<const Adapter> pool_adapters() { return kPoolAdapters; }

}  // namespace pantala::onnx
