// Images turned about their middle.
#pragma once

#include <cstddef>

#include "data/resize.h"

namespace pantala::data {

// Counter-clockwise by `radians`; bilinear, and 0 where nothing comes from. `to` has room for as
// many images of the same size.
void rotate_images(DType dtype, const std::byte* from, const Images& images, double radians,
                   std::byte* to);

}  // namespace pantala::data
