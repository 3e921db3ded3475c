// Pooling and resampling of [batch, channels, height, width].
#pragma once

#include "pantala/ops/movement.h"
#include "pantala/tensor.h"

namespace pantala {

struct PoolOptions {
  IntList stride = {};  // empty: the kernel's size
  IntList padding = {0};
  bool ceil_mode = false;         // round the output size up
  bool count_include_pad = true;  // average only
};
// Gives the gradient to the first of equal maxima.
Tensor max_pool2d(Operand x, const IntList& kernel, const PoolOptions& options = {});
// The maxima and their positions h * width + w in each plane, as i32.
std::pair<Tensor, Tensor> max_pool2d_with_indices(Operand x, const IntList& kernel,
                                                  const PoolOptions& options = {});
Tensor avg_pool2d(Operand x, const IntList& kernel, const PoolOptions& options = {});
Tensor global_avg_pool(Operand x);  // the mean over all spatial axes: [batch, channels]
Tensor upsample_nearest2x(Operand x);
Tensor upsample_bilinear2x(Operand x);  // align_corners = false

}  // namespace pantala
