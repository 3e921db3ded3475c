// What each transform does to the elements of one item.
#include <cstring>

#include "base/philox.h"
#include "data/pipeline.h"
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

// Images one after the other: the last two axes of an item, however many stand before them.
struct Images {
  std::int64_t count = 0, height = 0, width = 0;
};
Images images_of(const Shape& shape) {
  const std::int64_t height = shape[shape.rank() - 2], width = shape.back();
  std::int64_t count = 1;
  for (int axis = 0; axis < shape.rank() - 2; ++axis) count *= shape[axis];
  return {count, height, width};
}

struct Runner {
  const Step& step;
  const DrawKey& key;
  std::int64_t item;
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
    crop(in, out, {(in.height - out.height) / 2, (in.width - out.width) / 2});
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

  void operator()(const Reshape&) const { throw InternalError("reshape moves no elements"); }
  void operator()(const OneHot&) const { throw InternalError("one_hot is of the label"); }

 private:
  struct Place {
    std::int64_t row = 0, column = 0;
  };

  // Draw 0 to 3 of this step for this item.
  std::uint32_t bits(std::uint64_t draw) const {
    return random_bits(key.seed, key.epoch, step.number,
                       static_cast<std::uint64_t>(item) * 4 + draw);
  }
  std::int64_t below(std::uint64_t draw, std::int64_t limit) const {
    return static_cast<std::int64_t>(
        std::uint64_t{bits(draw)} * static_cast<std::uint64_t>(limit) >> 32);
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

void run_step(const Step& step, const DrawKey& key, std::int64_t item, const std::byte* from,
              std::byte* to) {
  std::visit(Runner{step, key, item, from, to}, step.transform);
}

}  // namespace pantala::data
