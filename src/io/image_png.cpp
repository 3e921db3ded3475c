// PNG, by libpng.
#include <png.h>

#include <algorithm>
#include <cstring>

#include "io/image_codec.h"

namespace pantala::io {

namespace {

constexpr std::string_view kSignature = "\x89PNG\r\n\x1a\n";
// No deflated stream holds more than so many times its own size.
constexpr std::int64_t kMaxInflation = 1032;

// A reading of libpng. Trivial but for its end, and not moved: libpng keeps its address.
struct PngReading {
  std::string_view left;  // to be read
  png_structp png = nullptr;
  png_infop info = nullptr;
  char message[128] = "";

  PngReading() = default;
  ~PngReading() { png_destroy_read_struct(&png, &info, nullptr); }
  PngReading(const PngReading&) = delete;
  PngReading& operator=(const PngReading&) = delete;
};

extern "C" {
// Only trivial objects live in the frames that this leaves.
[[noreturn]] static void png_failed(png_structp png, png_const_charp message) {
  auto* reading = static_cast<PngReading*>(png_get_error_ptr(png));
  std::strncpy(reading->message, message, sizeof reading->message - 1);
  png_longjmp(png, 1);
}
static void png_warned(png_structp, png_const_charp) {}
static void png_more(png_structp png, png_bytep out, std::size_t count) {
  auto* reading = static_cast<PngReading*>(png_get_io_ptr(png));
  if (count > reading->left.size()) png_error(png, "the file ends too early");
  std::memcpy(out, reading->left.data(), count);
  reading->left.remove_prefix(count);
}
}

// Up to the first byte of pixels, with samples of 8 bits and without alpha to come.
bool begin(PngReading& reading) {
  // What is in these changes no pixel here, and may be compressed.
  static constexpr png_byte kIgnored[] =
      "cHRM\0eXIf\0gAMA\0hIST\0iCCP\0iTXt\0pHYs\0sBIT\0sPLT\0sRGB\0tEXt\0zTXt";
  reading.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &reading, png_failed, png_warned);
  if (!reading.png) return false;
  if (setjmp(png_jmpbuf(reading.png))) return false;
  reading.info = png_create_info_struct(reading.png);
  if (!reading.info) return false;
  png_set_keep_unknown_chunks(reading.png, PNG_HANDLE_CHUNK_NEVER, kIgnored,
                              static_cast<int>(sizeof kIgnored / 5));
  png_set_read_fn(reading.png, &reading, png_more);
  png_read_info(reading.png, reading.info);
  png_set_palette_to_rgb(reading.png);
  png_set_expand_gray_1_2_4_to_8(reading.png);
  png_set_strip_16(reading.png);
  png_set_strip_alpha(reading.png);
  png_set_interlace_handling(reading.png);
  return true;
}

bool read_rows(PngReading& reading, png_bytepp rows) {
  if (setjmp(png_jmpbuf(reading.png))) return false;
  png_read_image(reading.png, rows);
  png_read_end(reading.png, nullptr);
  return true;
}

bool settle(PngReading& reading) {
  if (setjmp(png_jmpbuf(reading.png))) return false;
  png_read_update_info(reading.png, reading.info);
  return true;
}

}  // namespace

bool is_png(std::string_view bytes) { return bytes.starts_with(kSignature); }

Pixels decode_png(const ImageFile& file) {
  PngReading reading;
  reading.left = file.bytes;
  const auto fail = [&] { fail_image(file, "PNG", reading.message); };
  if (!begin(reading)) fail();
  Pixels image;
  image.height = png_get_image_height(reading.png, reading.info);
  image.width = png_get_image_width(reading.png, reading.info);
  const std::int64_t bits = std::int64_t{png_get_bit_depth(reading.png, reading.info)} *
                            png_get_channels(reading.png, reading.info);
  // Every row has a byte of its own, too: that catches images that are narrow and very high.
  const auto most_bytes = static_cast<std::int64_t>(file.bytes.size()) * kMaxInflation;
  check_image_size(file, "PNG", image.height, image.width,
                   image.height > most_bytes ? 0 : most_bytes * 8 / bits);
  if (!settle(reading)) fail();
  image.channels = png_get_channels(reading.png, reading.info);
  const auto row_bytes = static_cast<std::size_t>(image.width * image.channels);
  if (png_get_rowbytes(reading.png, reading.info) != row_bytes ||
      (image.channels != 1 && image.channels != 3))
    fail_image(file, "PNG", "its rows have an unexpected size");
  image.samples.resize(static_cast<std::size_t>(image.height) * row_bytes);
  std::vector<png_bytep> rows(static_cast<std::size_t>(image.height));
  for (std::size_t row = 0; row < rows.size(); ++row)
    rows[row] = image.samples.data() + row * row_bytes;
  if (!read_rows(reading, rows.data())) fail();
  return image;
}

}  // namespace pantala::io
