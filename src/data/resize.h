// Images brought to another size: bilinear, and with a filter as wide as the pixels that fall into
// one when they become fewer (antialiasing). The weights of bytes are Pillow's, and so are the
// results, bit by bit, where Pillow too goes along the rows first (some versions take the columns
// first when that is less work: then a byte may differ by one). f32 agrees but for the last bits.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "pantala/dtype.h"

namespace pantala::data {

// Images one after the other, equally large.
struct Images {
  std::int64_t count = 0, height = 0, width = 0;
};
// A part of each image, not empty.
struct Window {
  std::int64_t top = 0, left = 0, height = 0, width = 0;
};

// A mean of elements as an element. It lies between them, but the largest i64 is no double.
template <class Element>
Element nearest(double mean) {
  if constexpr (std::is_floating_point_v<Element>)
    return static_cast<Element>(mean);
  else
    return mean >= static_cast<double>(std::numeric_limits<Element>::max())
               ? std::numeric_limits<Element>::max()
               : static_cast<Element>(std::round(mean));
}

// `to` has room for as many images of height x width, which are not 0.
void resize_window(DType dtype, const std::byte* from, const Images& images, const Window& window,
                   std::byte* to, std::int64_t height, std::int64_t width);

}  // namespace pantala::data
