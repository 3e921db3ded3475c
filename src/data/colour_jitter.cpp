#include "data/colour_jitter.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace pantala::data {

namespace {

struct Pixel {
  float red = 0, green = 0, blue = 0;
};

float gray_of(const Pixel& p) { return 0.2989F * p.red + 0.587F * p.green + 0.114F * p.blue; }

float clamped(float value) { return std::clamp(value, 0.0F, 1.0F); }

// `factor` of the value, the rest of `other`.
float blend(float value, float other, float factor) {
  return clamped(factor * value + (1.0F - factor) * other);
}

class Picture {
 public:
  Picture(std::span<float> values, std::int64_t channels)
      : values_(values), count_(values.size() / static_cast<std::size_t>(channels)) {}

  bool has_colours() const { return values_.size() > count_; }
  std::size_t size() const { return count_; }
  Pixel at(std::size_t k) const {
    return {values_[k], values_[count_ + k], values_[2 * count_ + k]};
  }
  void set(std::size_t k, const Pixel& p) {
    values_[k] = p.red, values_[count_ + k] = p.green, values_[2 * count_ + k] = p.blue;
  }
  std::span<float> values() const { return values_; }

 private:
  std::span<float> values_;
  std::size_t count_;
};

void change_brightness(Picture& picture, float factor) {
  for (float& value : picture.values()) value = clamped(factor * value);
}

void change_contrast(Picture& picture, float factor) {
  double sum = 0;
  for (std::size_t k = 0; k < picture.size(); ++k)
    sum +=
        static_cast<double>(picture.has_colours() ? gray_of(picture.at(k)) : picture.values()[k]);
  const auto mean = static_cast<float>(sum / static_cast<double>(picture.size()));
  for (float& value : picture.values()) value = blend(value, mean, factor);
}

void change_saturation(Picture& picture, float factor) {
  if (!picture.has_colours()) return;
  for (std::size_t k = 0; k < picture.size(); ++k) {
    const Pixel p = picture.at(k);
    const float gray = gray_of(p);
    picture.set(
        k, {blend(p.red, gray, factor), blend(p.green, gray, factor), blend(p.blue, gray, factor)});
  }
}

struct Hsv {
  float hue = 0, saturation = 0, value = 0;
};

Hsv hsv_of(const Pixel& p) {
  const float most = std::max({p.red, p.green, p.blue}), least = std::min({p.red, p.green, p.blue});
  if (most == least) return {0, 0, most};
  const float range = most - least;
  const float red = (most - p.red) / range, green = (most - p.green) / range,
              blue = (most - p.blue) / range;
  const float sixths = most == p.red     ? blue - green
                       : most == p.green ? 2.0F + red - blue
                                         : 4.0F + green - red;
  return {std::fmod(sixths / 6.0F + 1.0F, 1.0F), range / most, most};
}

Pixel pixel_of(const Hsv& hsv) {
  const float sixths = hsv.hue * 6.0F, whole = std::floor(sixths), rest = sixths - whole;
  const float v = hsv.value, p = clamped(v * (1.0F - hsv.saturation)),
              q = clamped(v * (1.0F - hsv.saturation * rest)),
              t = clamped(v * (1.0F - hsv.saturation * (1.0F - rest)));
  switch (static_cast<int>(whole) % 6) {
    case 0:
      return {v, t, p};
    case 1:
      return {q, v, p};
    case 2:
      return {p, v, t};
    case 3:
      return {p, q, v};
    case 4:
      return {t, p, v};
    default:
      return {v, p, q};
  }
}

void turn_hue(Picture& picture, float turn) {
  if (!picture.has_colours()) return;
  for (std::size_t k = 0; k < picture.size(); ++k) {
    Hsv hsv = hsv_of(picture.at(k));
    hsv.hue = std::fmod(hsv.hue + turn + 1.0F, 1.0F);
    picture.set(k, pixel_of(hsv));
  }
}

}  // namespace

std::array<int, 4> order_of_four(std::int64_t k) {
  std::array<int, 4> order = {0, 1, 2, 3};
  for (std::int64_t left = 4; left > 1; --left) {
    const auto place = static_cast<std::size_t>(4 - left);
    std::swap(order[place], order[place + static_cast<std::size_t>(k % left)]);
    k /= left;
  }
  return order;
}

void change_colours(std::span<float> pixels, std::int64_t channels, const ColourChange& change) {
  if (pixels.empty()) return;
  Picture picture(pixels, channels);
  for (const int which : change.order) {
    if (which == 0 && change.brightness != 1)
      change_brightness(picture, static_cast<float>(change.brightness));
    if (which == 1 && change.contrast != 1)
      change_contrast(picture, static_cast<float>(change.contrast));
    if (which == 2 && change.saturation != 1)
      change_saturation(picture, static_cast<float>(change.saturation));
    if (which == 3 && change.hue != 0) turn_hue(picture, static_cast<float>(change.hue));
  }
}

}  // namespace pantala::data
