// What each transform does to the elements of one item.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <vector>

#include "base/philox.h"
#include "base/text.h"
#include "data/colour_jitter.h"
#include "data/preparation.h"
#include "data/resize.h"
#include "data/rotate.h"
#include "pantala/error.h"

namespace pantala::data {

namespace {

// `work` with a pointer to the elements in their own type.
template <class Work>
void with_elements(DType dtype, const std::byte* from, const Work& work) {
  switch (dtype) {
    case f32:
      return work(reinterpret_cast<const float*>(from));
    case f64:
      return work(reinterpret_cast<const double*>(from));
    case i32:
      return work(reinterpret_cast<const std::int32_t*>(from));
    case i64:
      return work(reinterpret_cast<const std::int64_t*>(from));
    default:
      return work(reinterpret_cast<const std::uint8_t*>(from));
  }
}

template <class Element>
void reverse_rows(const std::byte* from, std::byte* to, std::int64_t rows, std::int64_t width) {
  const auto* in = reinterpret_cast<const Element*>(from);
  auto* out = reinterpret_cast<Element*>(to);
  for (std::int64_t row = 0; row < rows; ++row, in += width, out += width)
    for (std::int64_t k = 0; k < width; ++k) out[k] = in[width - 1 - k];
}

// The last two axes of an item, however many stand before them.
Images images_of(const Shape& shape) {
  const std::int64_t height = shape[shape.rank() - 2], width = shape.back();
  std::int64_t count = 1;
  for (int axis = 0; axis < shape.rank() - 2; ++axis) count *= shape[axis];
  return {count, height, width};
}

constexpr double kPi = 3.14159265358979323846;

// Python's round(), with which torchvision halves a margin.
std::int64_t half_to_even(std::int64_t twice) {
  return twice / 2 + (twice % 2 != 0 && twice / 2 % 2 != 0);
}

// ITU-R 601: bytes by the fixed-point sum that Pillow has.
template <class Element>
void to_gray(const Element* in, std::int64_t pixels, std::byte* to) {
  auto* out = reinterpret_cast<Element*>(to);
  const Element *red = in, *green = in + pixels, *blue = in + 2 * pixels;
  for (std::int64_t k = 0; k < pixels; ++k) {
    if constexpr (std::is_same_v<Element, std::uint8_t>) {
      out[k] = static_cast<std::uint8_t>(
          (red[k] * 19595 + green[k] * 38470 + blue[k] * 7471 + 0x8000) >> 16);
    } else {
      const double sum = 0.299 * static_cast<double>(red[k]) +
                         0.587 * static_cast<double>(green[k]) +
                         0.114 * static_cast<double>(blue[k]);
      out[k] = nearest<Element>(sum);
    }
  }
}

struct Runner {
  const StepRun& step;
  const std::byte* from;
  std::byte* to;

  void operator()(const Scale& scale) const {
    const auto factor = static_cast<float>(scale.factor);
    const std::int64_t count = step.from.shape.numel();
    auto* out = reinterpret_cast<float*>(to);
    with_elements(step.from.dtype, from, [=](const auto* in) {
      for (std::int64_t k = 0; k < count; ++k) out[k] = static_cast<float>(in[k]) * factor;
    });
  }

  void operator()(const Normalize& normalize) const {
    const auto channels = static_cast<std::int64_t>(normalize.mean.size());
    const std::int64_t count = step.from.shape.numel() / channels;
    auto* out = reinterpret_cast<float*>(to);
    with_elements(step.from.dtype, from, [&](const auto* in) {
      for (std::int64_t channel = 0; channel < channels; ++channel, in += count, out += count) {
        const auto at = static_cast<std::size_t>(channel);
        const auto mean = static_cast<float>(normalize.mean[at]);
        const auto std = static_cast<float>(normalize.std[at]);
        for (std::int64_t k = 0; k < count; ++k) out[k] = (static_cast<float>(in[k]) - mean) / std;
      }
    });
  }

  void operator()(const Pad& pad) const {
    const Images in = images_of(step.from.shape), out = images_of(step.to.shape);
    const std::int64_t size = dtype_bytes(step.from.dtype);
    std::memset(to, 0, static_cast<std::size_t>(step.to.shape.numel() * size));
    copy_window(in, {0, 0}, out, {pad.pixels, pad.pixels}, {in.height, in.width});
  }

  void operator()(const RandomCrop&) const {
    const Images in = images_of(step.from.shape), out = images_of(step.to.shape);
    crop(in, out, {below(0, in.height - out.height + 1), below(1, in.width - out.width + 1)});
  }

  void operator()(const CenterCrop&) const {
    const Images in = images_of(step.from.shape), out = images_of(step.to.shape);
    crop(in, out, {half_to_even(in.height - out.height), half_to_even(in.width - out.width)});
  }

  void operator()(const Resize&) const {
    const Images in = images_of(step.from.shape), out = images_of(step.to.shape);
    resize_window(step.from.dtype, from, in, {0, 0, in.height, in.width}, to, out.height,
                  out.width);
  }

  void operator()(const RandomResizedCrop& crop) const {
    const Images in = images_of(step.from.shape), out = images_of(step.to.shape);
    resize_window(step.from.dtype, from, in, random_window(crop, in), to, out.height, out.width);
  }

  void operator()(const Channels&) const {
    const std::int64_t has = step.from.shape[0], wanted = step.to.shape[0];
    const std::int64_t pixels = step.from.shape[1] * step.from.shape[2];
    const auto size = static_cast<std::size_t>(pixels * dtype_bytes(step.from.dtype));
    if (size == 0) return;
    if (has == wanted) {
      std::memcpy(to, from, static_cast<std::size_t>(has) * size);
    } else if (has == 1) {
      for (std::int64_t channel = 0; channel < wanted; ++channel)
        std::memcpy(to + static_cast<std::size_t>(channel) * size, from, size);
    } else {
      with_elements(step.from.dtype, from, [&](const auto* in) { to_gray(in, pixels, to); });
    }
  }

  void operator()(const RandomFlip& flip) const {
    const std::int64_t width = step.from.shape.back(), count = step.from.shape.numel();
    const std::int64_t size = dtype_bytes(step.from.dtype);
    if (count == 0) return;
    if (bits_to_unit(bits(0)) >= flip.p) {
      std::memcpy(to, from, static_cast<std::size_t>(count * size));
    } else {
      const auto reverse = size == 8   ? reverse_rows<std::uint64_t>
                           : size == 4 ? reverse_rows<std::uint32_t>
                                       : reverse_rows<std::uint8_t>;
      reverse(from, to, count / width, width);
    }
  }

  void operator()(const ColorJitter& jitter) const {
    const auto count = static_cast<std::size_t>(step.from.shape.numel());
    const std::int64_t channels = step.from.shape.rank() == 3 ? step.from.shape[0] : 1;
    const ColourChange change = drawn(jitter);
    if (step.from.dtype == f32) {
      auto* pixels = reinterpret_cast<float*>(to);
      std::copy_n(reinterpret_cast<const float*>(from), count, pixels);
      check_unit({pixels, count});
      change_colours({pixels, count}, channels, change);
      return;
    }
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(from);
    std::vector<float> pixels(count);
    std::transform(bytes, bytes + count, pixels.begin(),
                   [](std::uint8_t byte) { return static_cast<float>(byte) / 255.0F; });
    change_colours(pixels, channels, change);
    std::transform(pixels.begin(), pixels.end(), reinterpret_cast<std::uint8_t*>(to),
                   [](float value) { return static_cast<std::uint8_t>(value * 255.0F + 0.5F); });
  }

  void operator()(const RandomRotation& rotation) const {
    const double turn = (2 * bits_to_unit(bits(0)) - 1) * rotation.degrees;
    rotate_images(step.from.dtype, from, images_of(step.from.shape), turn * kPi / 180, to);
  }

  void operator()(const Reshape&) const { throw InternalError("reshape moves no elements"); }
  void operator()(const OneHot&) const { throw InternalError("one_hot is of the label"); }

 private:
  struct Place {
    std::int64_t row = 0, column = 0;
  };

  // Draw 0 to 3 of this step for this item, in one of its attempts.
  std::uint32_t bits(std::uint64_t draw, std::uint32_t attempt = 0) const {
    return random_bits(step.key.seed, step.key.epoch, step.step.number | attempt << 24,
                       static_cast<std::uint64_t>(step.item) * 4 + draw);
  }
  std::int64_t below(std::uint64_t draw, std::int64_t limit, std::uint32_t attempt = 0) const {
    return static_cast<std::int64_t>(
        std::uint64_t{bits(draw, attempt)} * static_cast<std::uint64_t>(limit) >> 32);
  }

  ColourChange drawn(const ColorJitter& jitter) const {
    const auto factor = [&](std::uint64_t draw, double share) {
      const double low = std::max(0.0, 1 - share);
      return low + (1 + share - low) * bits_to_unit(bits(draw));
    };
    return {.brightness = factor(0, jitter.brightness),
            .contrast = factor(1, jitter.contrast),
            .saturation = factor(2, jitter.saturation),
            .hue = (2 * bits_to_unit(bits(3)) - 1) * jitter.hue,
            .order = order_of_four(below(0, 24, 1))};
  }

  void check_unit(std::span<const float> pixels) const {
    for (const float value : pixels)
      if (!(value >= 0 && value <= 1))
        throw ValueError(fmt::format(
            "{}: item {} has the value {}; colours are bytes, or f32 from 0 to 1",
            describe(step.step.transform), step.item, exact(static_cast<double>(value))));
  }

  // As torchvision draws it: ten attempts, then the largest window in the middle whose ratio is
  // allowed.
  Window random_window(const RandomResizedCrop& crop, const Images& in) const {
    const auto height = static_cast<double>(in.height), width = static_cast<double>(in.width);
    const double low = std::log(crop.min_ratio), high = std::log(crop.max_ratio);
    for (std::uint32_t attempt = 0; attempt < 10; ++attempt) {
      const auto unit = [&](std::uint64_t draw) { return bits_to_unit(bits(draw, attempt)); };
      const double area =
          height * width * (crop.min_area + (crop.max_area - crop.min_area) * unit(0));
      const double ratio = std::exp(low + (high - low) * unit(1));
      const std::int64_t wide = std::llround(std::sqrt(area * ratio)),
                         tall = std::llround(std::sqrt(area / ratio));
      if (wide < 1 || wide > in.width || tall < 1 || tall > in.height) continue;
      return {below(2, in.height - tall + 1, attempt), below(3, in.width - wide + 1, attempt), tall,
              wide};
    }
    std::int64_t tall = in.height, wide = in.width;
    if (width < crop.min_ratio * height) tall = std::llround(width / crop.min_ratio);
    if (width > crop.max_ratio * height) wide = std::llround(height * crop.max_ratio);
    tall = std::clamp<std::int64_t>(tall, 1, in.height);
    wide = std::clamp<std::int64_t>(wide, 1, in.width);
    return {(in.height - tall) / 2, (in.width - wide) / 2, tall, wide};
  }

  void crop(const Images& in, const Images& out, Place at) const {
    copy_window(in, at, out, {0, 0}, {out.height, out.width});
  }
  // The same window of every image.
  void copy_window(const Images& in, Place at, const Images& out, Place target, Place size) const {
    const std::int64_t width = dtype_bytes(step.from.dtype);
    if (size.column == 0) return;
    for (std::int64_t image = 0; image < in.count; ++image)
      for (std::int64_t row = 0; row < size.row; ++row) {
        const std::int64_t source = (image * in.height + at.row + row) * in.width + at.column;
        const std::int64_t result =
            (image * out.height + target.row + row) * out.width + target.column;
        std::memcpy(to + result * width, from + source * width,
                    static_cast<std::size_t>(size.column * width));
      }
  }
};

}  // namespace

void run_step(const StepRun& run, const std::byte* from, std::byte* to) {
  std::visit(Runner{run, from, to}, run.step.transform);
}

}  // namespace pantala::data
