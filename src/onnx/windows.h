// The windows of convolutions and pools, as ONNX says them: sizes per spatial axis, padding before
// and after, or a rule from which padding follows.
#pragma once

#include "onnx/node.h"

namespace pantala::onnx {

// One entry per spatial axis. Nothing is negative or above 2^30, so that products do not overflow.
struct Windows {
  IntList kernel, stride, dilation, before, after;

  int axes() const { return static_cast<int>(kernel.size()); }
  std::int64_t extent(std::size_t k) const { return dilation[k] * (kernel[k] - 1) + 1; }
  bool symmetric() const { return before == after; }
  bool dilated() const;
};

// Checked against the node's attributes strides, dilations, pads and auto_pad; `sizes` are those of
// the spatial axes of x.
Windows read_windows(const Node& node, const IntList& kernel, const IntList& sizes);
// A list with an entry in [least, 2^30] per axis.
IntList window_list(const Node& node, std::string_view name, std::size_t axes,
                    std::int64_t otherwise, std::int64_t least);
// The sizes behind batch and channels; TypeError if there are none.
IntList spatial_sizes(const Node& node, const Shape& shape);

}  // namespace pantala::onnx
