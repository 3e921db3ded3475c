#include "data/resize.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

namespace pantala::data {

namespace {

constexpr int kFixedBits = 22;  // of the weights of bytes, as Pillow has them

template <class Element>
using Weight = std::conditional_t<std::is_same_v<Element, std::uint8_t>, std::int32_t, double>;

// For every place of the result the neighbours that make it, and what each of them counts.
template <class Element>
struct Taps {
  struct Place {
    std::int64_t first = 0, count = 0;
    std::size_t weights = 0;  // where they begin
  };
  std::vector<Place> places;
  std::vector<Weight<Element>> weights;

  Taps(std::int64_t from, std::int64_t to) {
    const double scale = static_cast<double>(from) / static_cast<double>(to);
    const double support = std::max(scale, 1.0);  // half the width of the triangle
    std::vector<double> shares;
    for (std::int64_t k = 0; k < to; ++k) {
      const double center = (static_cast<double>(k) + 0.5) * scale;
      const std::int64_t first =
          std::max<std::int64_t>(0, static_cast<std::int64_t>(center - support + 0.5));
      const std::int64_t last = std::min(from, static_cast<std::int64_t>(center + support + 0.5));
      shares.clear();
      double sum = 0;
      for (std::int64_t at = first; at < last; ++at) {
        const double distance = (static_cast<double>(at) - center + 0.5) / support;
        shares.push_back(std::max(0.0, 1.0 - std::abs(distance)));
        sum += shares.back();
      }
      places.push_back({first, last - first, weights.size()});
      for (const double share : shares) weights.push_back(weight(share / sum));
    }
  }

 private:
  static Weight<Element> weight(double share) {
    if constexpr (std::is_same_v<Element, std::uint8_t>)
      return static_cast<std::int32_t>(0.5 + share * (1 << kFixedBits));
    else
      return share;
  }
};

template <class Element>
constexpr Weight<Element> kZero = 0;
template <>
constexpr std::int32_t kZero<std::uint8_t> = 1 << (kFixedBits - 1);  // a half, for rounding

template <class Element>
Element rounded(Weight<Element> sum) {
  if constexpr (std::is_same_v<Element, std::uint8_t>)
    return static_cast<std::uint8_t>(std::clamp(sum >> kFixedBits, 0, 255));
  else
    return nearest<Element>(sum);
}

// Rows of `taps` places, made of rows of `stride` elements.
template <class Element>
void resize_rows(const Element* from, std::int64_t rows, std::int64_t stride,
                 const Taps<Element>& taps, Element* to) {
  for (std::int64_t row = 0; row < rows; ++row, from += stride)
    for (const auto& place : taps.places) {
      const Element* in = from + place.first;
      const auto* weights = taps.weights.data() + place.weights;
      Weight<Element> sum = kZero<Element>;
      for (std::int64_t k = 0; k < place.count; ++k)
        sum += static_cast<Weight<Element>>(in[k]) * weights[k];
      *to++ = rounded<Element>(sum);
    }
}

template <class Element>
void resize_columns(const Element* from, std::int64_t width, std::int64_t stride,
                    const Taps<Element>& taps, Element* to) {
  std::vector<Weight<Element>> sums(static_cast<std::size_t>(width));
  for (const auto& place : taps.places) {
    std::fill(sums.begin(), sums.end(), kZero<Element>);
    for (std::int64_t k = 0; k < place.count; ++k) {
      const Element* in = from + (place.first + k) * stride;
      const Weight<Element> weight = taps.weights[place.weights + static_cast<std::size_t>(k)];
      for (std::size_t column = 0; column < sums.size(); ++column)
        sums[column] += static_cast<Weight<Element>>(in[column]) * weight;
    }
    for (const Weight<Element> sum : sums) *to++ = rounded<Element>(sum);
  }
}

// Along the rows first, then along the columns; an axis that keeps its size is left alone.
template <class Element>
void resize_all(const Element* from, const Images& images, const Window& window, Element* to,
                std::int64_t height, std::int64_t width) {
  const Taps<Element> across(window.width, width), down(window.height, height);
  std::vector<Element> between;
  if (window.width != width) between.resize(static_cast<std::size_t>(window.height * width));
  for (std::int64_t image = 0; image < images.count; ++image, to += height * width) {
    const Element* rows = from + (image * images.height + window.top) * images.width + window.left;
    std::int64_t stride = images.width;
    if (window.width != width) {
      Element* target = window.height == height ? to : between.data();
      resize_rows(rows, window.height, stride, across, target);
      if (target == to) continue;
      rows = target;
      stride = width;
    }
    if (window.height != height) {
      resize_columns(rows, width, stride, down, to);
    } else {
      for (std::int64_t row = 0; row < height; ++row)
        std::copy_n(rows + row * stride, width, to + row * width);
    }
  }
}

template <class Element>
void resize_as(const std::byte* from, const Images& images, const Window& window, std::byte* to,
               std::int64_t height, std::int64_t width) {
  resize_all(reinterpret_cast<const Element*>(from), images, window, reinterpret_cast<Element*>(to),
             height, width);
}

}  // namespace

void resize_window(DType dtype, const std::byte* from, const Images& images, const Window& window,
                   std::byte* to, std::int64_t height, std::int64_t width) {
  const auto resize = dtype == f32   ? resize_as<float>
                      : dtype == f64 ? resize_as<double>
                      : dtype == i32 ? resize_as<std::int32_t>
                      : dtype == i64 ? resize_as<std::int64_t>
                                     : resize_as<std::uint8_t>;
  resize(from, images, window, to, height, width);
}

}  // namespace pantala::data
