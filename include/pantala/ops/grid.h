// Reading an image at positions that a grid gives, as torch.nn.functional.grid_sample.
#pragma once

#include "pantala/tensor.h"

namespace pantala {

enum class GridMode { bilinear, nearest, bicubic };
enum class GridPadding {
  zeros,       // outside of the image is 0
  border,      // ... is the nearest element of its border
  reflection,  // ... mirrors the image
};
struct GridSampleOptions {
  GridMode mode = GridMode::bilinear;
  GridPadding padding = GridPadding::zeros;
  bool align_corners = false;  // -1 and 1 are the centres of the outer elements, not their edges
};
// x [batch, channels, height, width] at grid [batch, out_height, out_width, 2], whose last axis is
// (x, y), from -1 (left, top) to 1: [batch, channels, out_height, out_width].
Tensor grid_sample(Operand x, Operand grid, const GridSampleOptions& options = {});

}  // namespace pantala
