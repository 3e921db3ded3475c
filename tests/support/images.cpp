#include "support/images.h"

#include <jpeglib.h>
#include <zlib.h>

#include <cstdio>
#include <cstdlib>

#include "support/data_files.h"

namespace pantala::tests {

namespace {

// Pixel after pixel, each row beginning with `prefix`.
std::string interleaved(const Shape& shape, const std::vector<std::uint8_t>& planes,
                        const std::string& prefix) {
  const std::int64_t pixels = shape[1] * shape[2];
  std::string text;
  for (std::int64_t at = 0; at < pixels; ++at) {
    if (at % shape[2] == 0) text += prefix;
    for (std::int64_t channel = 0; channel < shape[0]; ++channel)
      text += static_cast<char>(planes.at(static_cast<std::size_t>(channel * pixels + at)));
  }
  return text;
}

}  // namespace

std::string png_chunk(const std::string& type, const std::string& content) {
  const std::string body = type + content;
  const auto checksum = crc32(crc32(0, nullptr, 0), reinterpret_cast<const Bytef*>(body.data()),
                              static_cast<uInt>(body.size()));
  return big(content.size(), 4) + body + big(checksum, 4);
}

std::string png_file(const PngHead& head, const std::string& rows, const std::string& extra) {
  return "\x89PNG\r\n\x1a\n" +
         png_chunk("IHDR", big(head.width, 4) + big(head.height, 4) + big(head.depth, 1) +
                               big(head.color, 1) + big(0, 2) + big(head.interlace, 1)) +
         extra + png_chunk("IDAT", deflated(rows, MAX_WBITS)) + png_chunk("IEND", "");
}

std::string png_file(const Shape& shape, const std::vector<std::uint8_t>& planes) {
  const PngHead head{.width = static_cast<std::uint32_t>(shape[2]),
                     .height = static_cast<std::uint32_t>(shape[1]),
                     .color = static_cast<std::uint8_t>(shape[0] == 1 ? 0 : 2)};
  return png_file(head, interleaved(shape, planes, std::string(1, '\0')));
}

std::string jpeg_file(const Shape& shape, const std::vector<std::uint8_t>& planes,
                      bool progressive) {
  std::string samples = interleaved(shape, planes, "");
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* made = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &made, &size);
  info.image_height = static_cast<JDIMENSION>(shape[1]);
  info.image_width = static_cast<JDIMENSION>(shape[2]);
  info.input_components = static_cast<int>(shape[0]);
  info.in_color_space = shape[0] == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&info);
  if (progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  while (info.next_scanline < info.image_height) {
    auto* row = reinterpret_cast<JSAMPROW>(samples.data()) +
                info.next_scanline * static_cast<std::size_t>(shape[2] * shape[0]);
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  std::string file(reinterpret_cast<const char*>(made), size);
  std::free(made);
  return file;
}

std::vector<std::uint8_t> test_image(std::int64_t height, std::int64_t width, std::int64_t label,
                                     std::int64_t number) {
  std::vector<std::uint8_t> planes;
  for (std::int64_t channel = 0; channel < 3; ++channel)
    for (std::int64_t row = 0; row < height; ++row)
      for (std::int64_t column = 0; column < width; ++column)
        planes.push_back(static_cast<std::uint8_t>(
            column < width / 3 ? 40 + 80 * label + number % 20
                               : (row * 7 + column * 5 + channel * 60 + number * 13) % 200));
  return planes;
}

}  // namespace pantala::tests
