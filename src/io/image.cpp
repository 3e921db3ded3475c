#include "io/image.h"

#include <fmt/format.h>

#include <algorithm>

#include "io/file.h"
#include "io/image_codec.h"
#include "pantala/error.h"

namespace pantala::io {

namespace {

constexpr std::uint64_t kMaxFileBytes = std::uint64_t{1} << 30;

// Pillow's rounding of ITU-R 601.
std::uint8_t gray_of(const std::uint8_t* pixel) {
  return static_cast<std::uint8_t>(
      (pixel[0] * 19595 + pixel[1] * 38470 + pixel[2] * 7471 + 0x8000) >> 16);
}

HostArray to_planes(const Pixels& image, std::int64_t channels) {
  const auto count = static_cast<std::size_t>(image.height * image.width),
             wanted = static_cast<std::size_t>(channels),
             has = static_cast<std::size_t>(image.channels);
  std::vector<std::uint8_t> planes(wanted * count);
  const std::uint8_t* samples = image.samples.data();
  if (wanted < has) {
    for (std::size_t k = 0; k < count; ++k) planes[k] = gray_of(samples + has * k);
  } else {
    for (std::size_t channel = 0; channel < wanted; ++channel) {
      const std::uint8_t* from = samples + (has == 1 ? 0 : channel);
      std::uint8_t* to = planes.data() + channel * count;
      for (std::size_t k = 0; k < count; ++k) to[k] = from[has * k];
    }
  }
  return {.shape = {channels, image.height, image.width}, .values = std::move(planes)};
}

std::string first_bytes(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes.substr(0, 4))
    text += fmt::format(" {:02x}", static_cast<unsigned char>(byte));
  return text;
}

}  // namespace

void fail_image(const ImageFile& file, std::string_view format, std::string_view why) {
  throw ParseError(fmt::format("{}: not a whole {} image: {}", file.name, format, why));
}

void check_image_size(const ImageFile& file, std::string_view format, std::int64_t height,
                      std::int64_t width, std::int64_t most_pixels) {
  if (height < 1 || width < 1)
    fail_image(file, format, fmt::format("it says that it has {} x {} pixels", width, height));
  // Both are at most 2^31.
  const std::int64_t pixels = height * width;
  if (pixels > file.max_pixels)
    throw ParseError(fmt::format("{}: {} x {} pixels are more than the limit of {} pixels",
                                 file.name, width, height, file.max_pixels));
  if (pixels > most_pixels)
    fail_image(file, format,
               fmt::format("it says that it has {} x {} pixels, which {} bytes cannot hold", width,
                           height, file.bytes.size()));
}

HostArray decode_image(std::string_view bytes, const std::string& name,
                       const ImageOptions& options) {
  if (options.channels != 1 && options.channels != 3)
    throw TypeError(fmt::format("{}: an image has 1 channel or 3, not {}", name, options.channels));
  const ImageFile file{.bytes = bytes, .name = name, .max_pixels = options.max_pixels};
  if (is_png(bytes)) return to_planes(decode_png(file), options.channels);
  if (is_jpeg(bytes)) return to_planes(decode_jpeg(file), options.channels);
  throw ParseError(fmt::format(
      "{}: neither a PNG nor a JPEG image: {}", name,
      bytes.empty() ? "the file is empty" : fmt::format("it begins with{}", first_bytes(bytes))));
}

HostArray read_image(const std::filesystem::path& path, const ImageOptions& options) {
  return decode_image(read_file(path, kMaxFileBytes), path.string(), options);
}

}  // namespace pantala::io
