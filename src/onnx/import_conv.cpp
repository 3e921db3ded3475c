// Convolutions.
#include <fmt/format.h>

#include <algorithm>

#include "onnx/adapters.h"
#include "onnx/windows.h"

namespace pantala::onnx {

namespace {

// Entries of the spatial axes with zeros for batch and channels in front.
IntList with_outer(const IntList& spatial) {
  IntList all{0, 0};
  all.insert(all.end(), spatial.begin(), spatial.end());
  return all;
}

Tensor plus_bias(const Tensor& y, const Tensor& bias) {
  IntList sizes(static_cast<std::size_t>(y.rank()), 1);
  sizes[1] = y.dim(1);
  return y + reshape(bias, sizes);
}

void convert_conv(Node& node) {
  const Shape x_shape = node.shape(0), w_shape = node.shape(1);
  const IntList sizes = spatial_sizes(node, x_shape);
  if (w_shape.rank() != x_shape.rank())
    node.fail(fmt::format("weight {} does not fit x {}", w_shape.str(), x_shape.str()));
  const IntList kernel = node.integers("kernel_shape", spatial_sizes(node, w_shape));
  if (kernel != spatial_sizes(node, w_shape))
    node.fail(fmt::format("kernel_shape is not that of the weight, {}", w_shape.str()));
  const Windows w = read_windows(node, kernel, sizes);
  ConvOptions options{w.stride, w.before, w.dilation, node.attribute("group", std::int64_t{1})};
  Tensor x = node.tensor(0);
  if (!w.symmetric()) {
    x = pad(x, with_outer(w.before), with_outer(w.after));
    options.padding = IntList(sizes.size(), 0);
  }
  const Tensor y = convolution(x, node.tensor(1), options);
  node.give(node.has(2) ? plus_bias(y, node.tensor(2)) : y);
}

// The result before cropping, per axis, and how much of it is cut off.
struct TransposedAxis {
  std::int64_t full, before, size;
};
TransposedAxis transposed_axis(const Node& node, const Windows& w, std::size_t k, std::int64_t size,
                               std::int64_t output_padding, std::int64_t wanted) {
  TransposedAxis axis{(size - 1) * w.stride[k] + w.extent(k), w.before[k], 0};
  const std::string rule = node.attribute("auto_pad", std::string("NOTSET"));
  if (rule == "SAME_UPPER" || rule == "SAME_LOWER" || wanted >= 0) {
    axis.size = wanted >= 0 ? wanted : size * w.stride[k];
    const std::int64_t cut = axis.full + output_padding - axis.size;
    const std::int64_t half = std::max<std::int64_t>(cut, 0) / 2;
    axis.before = rule == "SAME_UPPER" ? half : std::max<std::int64_t>(cut, 0) - half;
  } else {
    axis.size = axis.full + output_padding - w.before[k] - w.after[k];
  }
  if (axis.size < 1 || axis.size > (std::int64_t{1} << 30))
    node.fail(fmt::format("the result would have size {}", axis.size));
  return axis;
}

// The adjoint of a convolution without padding; pads are cut off its result, and an output padding
// adds zeros to it.
void convert_conv_transpose(Node& node) {
  const Shape x_shape = node.shape(0), w_shape = node.shape(1);
  const IntList sizes = spatial_sizes(node, x_shape);
  if (w_shape.rank() != x_shape.rank())
    node.fail(fmt::format("weight {} does not fit x {}", w_shape.str(), x_shape.str()));
  const std::size_t axes = sizes.size();
  const Windows w = read_windows(node, spatial_sizes(node, w_shape), sizes);
  const IntList output_padding = window_list(node, "output_padding", axes, 0, 0);
  IntList wanted = node.integers("output_shape", IntList(axes, -1));
  if (wanted.size() == axes + 2) wanted.erase(wanted.begin(), wanted.begin() + 2);
  if (wanted.size() != axes) node.fail("output_shape must have an entry per spatial axis");
  IntList full, starts{0, 0}, ends{INT64_MAX, INT64_MAX}, none(axes + 2, 0), after(axes + 2, 0);
  for (std::size_t k = 0; k < axes; ++k) {
    const TransposedAxis axis = transposed_axis(node, w, k, sizes[k], output_padding[k], wanted[k]);
    full.push_back(axis.full);
    starts.push_back(axis.before);
    ends.push_back(axis.before + axis.size);
    after[k + 2] = std::max<std::int64_t>(0, ends.back() - axis.full);
  }
  const ConvOptions options{w.stride, IntList(axes, 0), w.dilation,
                            node.attribute("group", std::int64_t{1})};
  Tensor y = convolution_input_grad(node.tensor(0), node.tensor(1), full, options);
  if (after != none) y = pad(y, none, after);
  y = slice(y, starts, ends);
  node.give(node.has(2) ? plus_bias(y, node.tensor(2)) : y);
}

constexpr Adapter kConvAdapters[] = {
    {"Conv", convert_conv, false},
    {"ConvTranspose", convert_conv_transpose, false},
};

}  // namespace

std::span<const Adapter> conv_adapters() { return kConvAdapters; }

}  // namespace pantala::onnx
