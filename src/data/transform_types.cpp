// What each transform needs and gives.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/text.h"
#include "data/pipeline.h"
#include "pantala/error.h"

namespace pantala::data {

namespace {

constexpr std::int64_t kMaxPad = 1 << 16;
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
  const Type& from;

  Type operator()(const Scale& scale) const {
    if (!finite_in_f32(scale.factor)) refuse(transform, "the factor must be a finite f32");
    return {f32, from.shape};
  }
  Type operator()(const Normalize& normalize) const {
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
    return {f32, from.shape};
  }
  Type operator()(const Reshape& reshape) const {
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
    return {from.dtype, shape};
  }
  Type operator()(const Pad& pad) const {
    if (pad.pixels < 0 || pad.pixels > kMaxPad)
      refuse(transform, fmt::format("expected 0 to {} pixels", kMaxPad));
    const auto [height, width] = image();
    return with_image(height + 2 * pad.pixels, width + 2 * pad.pixels);
  }
  Type operator()(const RandomCrop& crop) const { return cropped(crop.height, crop.width); }
  Type operator()(const CenterCrop& crop) const { return cropped(crop.height, crop.width); }
  Type operator()(const RandomFlip& flip) const {
    if (!(flip.p >= 0 && flip.p <= 1)) refuse(transform, "p must lie in [0, 1]");
    if (from.shape.rank() == 0) refuse(transform, "an item is a single number");
    return from;
  }
  Type operator()(const OneHot&) const { throw InternalError("one_hot is of the label"); }

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
  Type with_image(std::int64_t height, std::int64_t width) const {
    std::vector<std::int64_t> sizes = from.shape.vec();
    sizes[sizes.size() - 2] = height;
    sizes[sizes.size() - 1] = width;
    const Shape shape = checked_shape(sizes);
    if (shape.numel() > kMaxItemBytes / dtype_bytes(from.dtype))
      refuse(transform, fmt::format("an item of {} would be larger than 2 GiB", shape.str()));
    return {from.dtype, shape};
  }
  Type cropped(std::int64_t height, std::int64_t width) const {
    const auto [has_height, has_width] = image();
    if (height < 1 || width < 1 || height > has_height || width > has_width)
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
  std::string operator()(const RandomCrop& t) const {
    return fmt::format("random_crop({}x{})", t.height, t.width);
  }
  std::string operator()(const CenterCrop& t) const {
    return fmt::format("center_crop({}x{})", t.height, t.width);
  }
  std::string operator()(const RandomFlip& t) const {
    return fmt::format("random_flip({})", exact(t.p));
  }
  std::string operator()(const OneHot& t) const { return fmt::format("one_hot({})", t.classes); }
};

}  // namespace

std::string describe(const Transform& transform) { return std::visit(Description{}, transform); }

Type transformed(const Transform& transform, const Type& from) {
  return std::visit(Typing{transform, from}, transform);
}

}  // namespace pantala::data
