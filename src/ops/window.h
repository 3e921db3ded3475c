// Sliding windows, as convolutions and pools have them: how many fit along an axis, which elements
// they touch, and the checks of their attributes. Attributes and spatial sizes are held to 2^30, so
// that no product of two of them can overflow.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "ir/op.h"

namespace pantala::ops {

inline constexpr std::int64_t kMostWindow = std::int64_t{1} << 30;

// Positions from begin up to, not including, end.
struct Span {
  std::int64_t begin = 0, end = 0;
};

// One spatial axis. Output o meets the input at o * stride + k * dilation - padding under element k
// of the kernel; positions outside [0, size) are padding.
struct WindowAxis {
  std::int64_t size = 1, kernel = 1, stride = 1, padding = 0, dilation = 1;

  std::int64_t padded() const { return size + 2 * padding; }
  std::int64_t extent() const { return dilation * (kernel - 1) + 1; }
  std::int64_t position(std::int64_t output, std::int64_t k) const {
    return output * stride + k * dilation - padding;
  }
  // How many windows fit; 0 if none does. `round_up` also counts a last window that sticks out, if
  // it starts inside the input or the padding before it.
  std::int64_t outputs(bool round_up = false) const;
  // Those of `count` outputs that meet the input, not the padding, under element k.
  Span outputs_inside(std::int64_t k, std::int64_t count) const;
};

// One entry per spatial axis: a single one stands for all. TypeError unless each entry lies in
// [least, 2^30].
ir::Ints per_axis(const ir::InferContext& c, std::string_view name, const ir::Ints& given, int axes,
                  std::int64_t least);

// The number of windows along axis `axis` of the input; TypeError where the window does not fit or
// a size is too large.
std::int64_t checked_outputs(const ir::InferContext& c, int axis, const WindowAxis& window,
                             bool round_up = false);

// The sizes behind batch and channels.
inline ir::Ints spatial_sizes(const Shape& shape) {
  return {shape.begin() + std::min(2, shape.rank()), shape.end()};
}

}  // namespace pantala::ops
