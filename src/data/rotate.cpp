#include "data/rotate.h"

#include <cmath>

namespace pantala::data {

namespace {

template <class Element>
class Pixels {
 public:
  Pixels(const Element* image, const Images& images) : image_(image), images_(images) {}

  // Between the four neighbours; those outside are 0.
  double at(double row, double column) const {
    const double top = std::floor(row), left = std::floor(column);
    const double down = row - top, right = column - left;
    const auto r = static_cast<std::int64_t>(top), c = static_cast<std::int64_t>(left);
    return (1 - down) * ((1 - right) * pixel(r, c) + right * pixel(r, c + 1)) +
           down * ((1 - right) * pixel(r + 1, c) + right * pixel(r + 1, c + 1));
  }

 private:
  double pixel(std::int64_t row, std::int64_t column) const {
    if (row < 0 || row >= images_.height || column < 0 || column >= images_.width) return 0;
    return static_cast<double>(image_[row * images_.width + column]);
  }

  const Element* image_;
  const Images& images_;
};

template <class Element>
void rotate_as(const std::byte* from, const Images& images, double radians, std::byte* to) {
  const double cosine = std::cos(radians), sine = std::sin(radians);
  const double middle_row = static_cast<double>(images.height - 1) / 2,
               middle_column = static_cast<double>(images.width - 1) / 2;
  auto* out = reinterpret_cast<Element*>(to);
  for (std::int64_t image = 0; image < images.count; ++image) {
    const Pixels<Element> pixels(
        reinterpret_cast<const Element*>(from) + image * images.height * images.width, images);
    for (std::int64_t row = 0; row < images.height; ++row)
      for (std::int64_t column = 0; column < images.width; ++column) {
        const double y = static_cast<double>(row) - middle_row,
                     x = static_cast<double>(column) - middle_column;
        *out++ = nearest<Element>(
            pixels.at(middle_row + cosine * y + sine * x, middle_column + cosine * x - sine * y));
      }
  }
}

}  // namespace

void rotate_images(DType dtype, const std::byte* from, const Images& images, double radians,
                   std::byte* to) {
  const auto rotate = dtype == f32   ? rotate_as<float>
                      : dtype == f64 ? rotate_as<double>
                      : dtype == i32 ? rotate_as<std::int32_t>
                      : dtype == i64 ? rotate_as<std::int64_t>
                                     : rotate_as<std::uint8_t>;
  rotate(from, images, radians, to);
}

}  // namespace pantala::data
