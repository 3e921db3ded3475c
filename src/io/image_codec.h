// What the readers of image formats share. The C libraries below them report errors by longjmp:
// it must not leave a frame in which a C++ object lives that wants to be destroyed. So every call
// into a library stands in a function without such objects, which returns false on an error; what
// the calls fill is owned by the caller.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pantala::io {

// Pixel after pixel.
struct Pixels {
  std::int64_t channels = 0, height = 0, width = 0;  // 1 or 3 channels
  std::vector<std::uint8_t> samples;
};

// Name and limit of the file that is read.
struct ImageFile {
  std::string_view bytes;
  const std::string& name;
  std::int64_t max_pixels = 0;
};

[[noreturn]] void fail_image(const ImageFile& file, std::string_view format, std::string_view why);
// ParseError for an image that is empty, above the limit, or larger than `most_pixels`, which is
// what so many bytes can hold.
void check_image_size(const ImageFile& file, std::string_view format, std::int64_t height,
                      std::int64_t width, std::int64_t most_pixels);

bool is_png(std::string_view bytes);
Pixels decode_png(const ImageFile& file);
bool is_jpeg(std::string_view bytes);
Pixels decode_jpeg(const ImageFile& file);

}  // namespace pantala::io
