// What each transform needs and gives.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/text.h"
#include "data/preparation.h"
#include "pantala/error.h"

namespace pantala::data {

namespace {

constexpr std::int64_t kMaxPad = 1 << 16;
constexpr std::int64_t kMaxSide = 1 << 16;
constexpr std::int64_t kMaxItemBytes = std::int64_t{1} << 31;

std::string list(const std::vector<double>& values) {
  std::vector<std::string> texts;
  for (const double value : values) texts.push_back(exact(value));
  return fmt::format("[{}]", fmt::join(texts, ", "));
}

[[noreturn]] void refuse(const Transform& transform, const std::string& why) {
  throw TypeError(fmt::format("{}: {}", describe(transform), why));
}

bool finite_in_f32(double value) {
  return std::abs(value) <= static_cast<double>(std::numeric_limits<float>::max());
}

// The type of an item that a transform leaves.
struct Typing {
  const Transform& transform;
  const ItemForm& from;

  ItemForm operator()(const Scale& scale) const {
    if (!finite_in_f32(scale.factor)) refuse(transform, "the factor must be a finite f32");
    return {f32, from.shape, from.any_size};
  }
  ItemForm operator()(const Normalize& normalize) const {
    const std::vector<double>&mean = normalize.mean, &std = normalize.std;
    if (mean.empty() || mean.size() != std.size())
      refuse(transform,
             fmt::format("{} with {}; expected as many of one as of the other",
                         counted(mean.size(), "mean"), counted(std.size(), "standard deviation")));
    const std::int64_t channels = from.shape.rank() == 0 ? 1 : from.shape[0];
    if (mean.size() != 1 && mean.size() != static_cast<std::size_t>(channels))
      refuse(transform, fmt::format("{} channels, but an item is {}; give one number or {}",
                                    mean.size(), from.str(), channels));
    for (const double value : mean)
      if (!finite_in_f32(value)) refuse(transform, "a mean must be a finite f32");
    for (const double value : std)
      if (!finite_in_f32(value) || static_cast<float>(value) <= 0)
        refuse(transform, "a standard deviation must be a finite f32 above 0");
    return {f32, from.shape, from.any_size};
  }
  ItemForm operator()(const Reshape& reshape) const {
    if (from.any_size)
      refuse(transform,
             fmt::format("the items are {}: of any size; resize or crop them first", from.str()));
    std::vector<std::int64_t> sizes = reshape.shape;
    const auto open = std::find(sizes.begin(), sizes.end(), -1);
    if (open != sizes.end()) {
      if (std::count(sizes.begin(), sizes.end(), -1) > 1) refuse(transform, "more than one -1");
      *open = 1;
      const std::int64_t known = checked_shape(sizes).numel();
      if (known == 0 || from.shape.numel() % known != 0)
        refuse(transform, fmt::format("an item of {} does not fit", from.str()));
      *open = from.shape.numel() / known;
    }
    const Shape shape = checked_shape(sizes);
    if (shape.rank() >= Shape::kMaxRank)
      refuse(transform, fmt::format("an item has at most {} axes", Shape::kMaxRank - 1));
    if (shape.numel() != from.shape.numel())
      refuse(transform, fmt::format("{} elements, but an item of {} has {}", shape.numel(),
                                    from.str(), from.shape.numel()));
    return {from.dtype, shape, false};
  }
  ItemForm operator()(const Pad& pad) const {
    if (pad.pixels < 0 || pad.pixels > kMaxPad)
      refuse(transform, fmt::format("expected 0 to {} pixels", kMaxPad));
    const auto [height, width] = image();
    if (from.any_size) return from;
    return with_image(height + 2 * pad.pixels, width + 2 * pad.pixels);
  }
  ItemForm operator()(const Resize& resize) const {
    const auto [height, width] = image();
    if (resize.height < 1 || resize.width < 0 || resize.height > kMaxSide ||
        resize.width > kMaxSide)
      refuse(transform, fmt::format("expected sides from 1 to {}", kMaxSide));
    if (resize.width > 0) {
      check_not_empty();
      return with_image(resize.height, resize.width);
    }
    if (from.any_size) return from;
    check_not_empty();
    const std::int64_t longer = resize.height * std::max(height, width) / std::min(height, width);
    return height < width ? with_image(resize.height, longer) : with_image(longer, resize.height);
  }
  ItemForm operator()(const RandomResizedCrop& crop) const {
    image();
    if (crop.height < 1 || crop.width < 1 || crop.height > kMaxSide || crop.width > kMaxSide)
      refuse(transform, fmt::format("expected sides from 1 to {}", kMaxSide));
    if (!(crop.min_area > 0 && crop.min_area <= crop.max_area && crop.max_area <= 1))
      refuse(transform, "the area must be a share of the image, above 0 and up to 1");
    if (!(crop.min_ratio > 0 && crop.min_ratio <= crop.max_ratio && crop.max_ratio <= kMaxSide))
      refuse(transform, fmt::format("the ratios must be above 0 and up to {}", kMaxSide));
    check_not_empty();
    return with_image(crop.height, crop.width);
  }
  ItemForm operator()(const Channels& channels) const {
    if (from.shape.rank() != 3)
      refuse(transform, fmt::format("needs items [channels, height, width], not {}", from.str()));
    const std::int64_t has = from.shape[0];
    if (channels.count < 1 || channels.count > kMaxSide)
      refuse(transform, fmt::format("expected 1 to {} channels", kMaxSide));
    if (has != channels.count && has != 1 && !(has == 3 && channels.count == 1))
      refuse(transform, fmt::format("one channel becomes any number of them, and three become one, "
                                    "but the items are {}",
                                    from.str()));
    return {from.dtype, checked_shape({channels.count, from.shape[1], from.shape[2]}),
            from.any_size};
  }
  ItemForm operator()(const RandomCrop& crop) const { return cropped(crop.height, crop.width); }
  ItemForm operator()(const CenterCrop& crop) const { return cropped(crop.height, crop.width); }
  ItemForm operator()(const RandomFlip& flip) const {
    if (!(flip.p >= 0 && flip.p <= 1)) refuse(transform, "p must lie in [0, 1]");
    if (from.shape.rank() == 0) refuse(transform, "an item is a single number");
    return from;
  }
  ItemForm operator()(const ColorJitter& jitter) const {
    for (const double share : {jitter.brightness, jitter.contrast, jitter.saturation})
      if (!(share >= 0 && finite_in_f32(share)))
        refuse(transform, "brightness, contrast and saturation must be finite and not negative");
    if (!(jitter.hue >= 0 && jitter.hue <= 0.5)) refuse(transform, "the hue must lie in [0, 0.5]");
    image();
    const int rank = from.shape.rank();
    const bool coloured = rank == 2 || (rank == 3 && (from.shape[0] == 1 || from.shape[0] == 3));
    if (!coloured || (from.dtype != u8 && from.dtype != f32))
      refuse(transform,
             fmt::format("needs images with 1 or 3 channels, of u8 or f32, not {}", from.str()));
    return from;
  }
  ItemForm operator()(const RandomRotation& rotation) const {
    if (!(rotation.degrees >= 0 && rotation.degrees <= 180))
      refuse(transform, "the degrees must lie in [0, 180]");
    image();
    return from;
  }
  ItemForm operator()(const OneHot&) const { throw InternalError("one_hot is of the label"); }

 private:
  Shape checked_shape(const std::vector<std::int64_t>& sizes) const {
    try {
      return Shape(sizes);
    } catch (const TypeError& error) { refuse(transform, error.what()); }
  }
  // Height and width.
  std::pair<std::int64_t, std::int64_t> image() const {
    const int rank = from.shape.rank();
    if (rank < 2)
      refuse(transform, fmt::format("needs items of at least two axes, not {}", from.str()));
    return {from.shape[rank - 2], from.shape[rank - 1]};
  }
  // There must be pixels to make others of.
  void check_not_empty() const {
    const auto [height, width] = image();
    if (!from.any_size && (height == 0 || width == 0))
      refuse(transform, fmt::format("the items are {}, without a pixel", from.str()));
  }
  ItemForm with_image(std::int64_t height, std::int64_t width) const {
    std::vector<std::int64_t> sizes = from.shape.vec();
    sizes[sizes.size() - 2] = height;
    sizes[sizes.size() - 1] = width;
    const Shape shape = checked_shape(sizes);
    if (shape.numel() > kMaxItemBytes / dtype_bytes(from.dtype))
      refuse(transform, fmt::format("an item of {} would be larger than 2 GiB", shape.str()));
    return {from.dtype, shape, false};
  }
  ItemForm cropped(std::int64_t height, std::int64_t width) const {
    const auto [has_height, has_width] = image();
    const bool fits = from.any_size || (height <= has_height && width <= has_width);
    if (from.any_size && (height < 1 || width < 1 || height > kMaxSide || width > kMaxSide))
      refuse(transform, fmt::format("expected sides from 1 to {}", kMaxSide));
    if (height < 1 || width < 1 || !fits)
      refuse(transform,
             fmt::format("the window must be at least 1x1 and fit into {}x{} (items are {})",
                         has_height, has_width, from.str()));
    return with_image(height, width);
  }
};

struct Description {
  std::string operator()(const Scale& t) const { return fmt::format("scale({})", exact(t.factor)); }
  std::string operator()(const Normalize& t) const {
    return fmt::format("normalize(mean {}, std {})", list(t.mean), list(t.std));
  }
  std::string operator()(const Reshape& t) const {
    return fmt::format("reshape([{}])", fmt::join(t.shape, ","));
  }
  std::string operator()(const Pad& t) const { return fmt::format("pad({})", t.pixels); }
  std::string operator()(const Resize& t) const {
    return t.width == 0 ? fmt::format("resize({})", t.height)
                        : fmt::format("resize({}x{})", t.height, t.width);
  }
  std::string operator()(const RandomResizedCrop& t) const {
    return fmt::format("random_resized_crop({}x{}, area {} to {}, ratio {} to {})", t.height,
                       t.width, exact(t.min_area), exact(t.max_area), exact(t.min_ratio),
                       exact(t.max_ratio));
  }
  std::string operator()(const Channels& t) const { return fmt::format("channels({})", t.count); }
  std::string operator()(const RandomCrop& t) const {
    return fmt::format("random_crop({}x{})", t.height, t.width);
  }
  std::string operator()(const CenterCrop& t) const {
    return fmt::format("center_crop({}x{})", t.height, t.width);
  }
  std::string operator()(const RandomFlip& t) const {
    return fmt::format("random_flip({})", exact(t.p));
  }
  std::string operator()(const ColorJitter& t) const {
    return fmt::format("color_jitter(brightness {}, contrast {}, saturation {}, hue {})",
                       exact(t.brightness), exact(t.contrast), exact(t.saturation), exact(t.hue));
  }
  std::string operator()(const RandomRotation& t) const {
    return fmt::format("random_rotation({})", exact(t.degrees));
  }
  std::string operator()(const OneHot& t) const { return fmt::format("one_hot({})", t.classes); }
};

}  // namespace

std::string describe(const Transform& transform) { return std::visit(Description{}, transform); }

std::string ItemForm::str() const {
  if (!any_size) return Type{dtype, shape}.str();
  std::string sizes;
  for (int axis = 0; axis < shape.rank() - 2; ++axis) sizes += fmt::format("{},", shape[axis]);
  return fmt::format("{}[{}height,width]", dtype_name(dtype), sizes);
}

ItemForm transformed(const Transform& transform, const ItemForm& from) {
  return std::visit(Typing{transform, from}, transform);
}

}  // namespace pantala::data
