// A convolution, or one of its gradients, as the scheduler sees it. x is [n, c, spatial...], the
// weight [o, c / groups, spatial...], y [n, o, spatial...] with 1 to 3 spatial axes; any strides,
// padding, dilation and groups. The operands of a direction are those of its op: forward (x,
// weight) -> y, input_grad (dy, weight) -> dx, weight_grad (x, dy) -> dweight.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/conv.h"
#include "schedule/archetype.h"
#include "schedule/common/elementwise.h"

namespace pantala::schedule {

enum class ConvDirection : std::uint8_t { forward, input_grad, weight_grad };

struct ConvAxis {
  std::int64_t x = 1, kernel = 1, stride = 1, padding = 0, dilation = 1;
  std::int64_t y() const { return (x + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1; }
  friend bool operator==(const ConvAxis&, const ConvAxis&) = default;
};

struct ConvSizes {
  std::int64_t batch = 0, in = 1, out = 1, groups = 1;  // in and out: all channels
  std::vector<ConvAxis> axes;                           // 1 to 3
  int rank() const { return static_cast<int>(axes.size()) + 2; }
  std::int64_t taps() const;
  std::int64_t positions() const;  // of y, all images
  bool depthwise() const { return groups > 1 && groups == in && groups == out; }
  friend bool operator==(const ConvSizes&, const ConvSizes&) = default;
};

ConvDirection direction_of(const ir::OpDef& op);
op::ConvAttrs window_of(const ir::Node& node);
ConvSizes sizes_of(const Context& context, const ir::Node& node);
double flops_of(const ConvSizes& sizes);  // of the direct algorithm

// The outputs of a group, which are computed from the convolution's sums element by element.
ElementwiseBody epilogue_body(const Context& context, std::uint32_t node,
                              const std::vector<GroupOutput>& outputs);

// The row of convolutions in a device's table, but for what is the device's own: the order of sums,
// work, efforts and kernels. Operands lie in memory as they are, images with channels last.
Archetype conv_row();

}  // namespace pantala::schedule
