// JPEG, by libjpeg-turbo.
#include <csetjmp>
#include <cstdio>  // jpeglib.h wants it before
// The order matters.
#include <jpeglib.h>
// clang-format off
#include <jerror.h>
// clang-format on

#include <algorithm>

#include "io/image_codec.h"

namespace pantala::io {

namespace {

// A block of 64 samples takes at least one bit; with arithmetic coding, images of few pixels may
// take less.
constexpr std::int64_t kMaxPixelsPerByte = 1024, kFewPixels = 1 << 20;
// A progressive file may refine its image over and over again.
constexpr int kMaxScans = 500;

// A reading of libjpeg. Not moved: the library keeps the addresses of its parts.
struct JpegReading {
  jpeg_decompress_struct info{};
  jpeg_error_mgr errors{};
  jpeg_progress_mgr progress{};
  std::jmp_buf failed{};
  char message[JMSG_LENGTH_MAX] = "";

  JpegReading() = default;
  ~JpegReading() { jpeg_destroy_decompress(&info); }
  JpegReading(const JpegReading&) = delete;
  JpegReading& operator=(const JpegReading&) = delete;
};

extern "C" {
// Only trivial objects live in the frames that this leaves.
[[noreturn]] static void jpeg_failed(j_common_ptr info) {
  auto* reading = static_cast<JpegReading*>(info->client_data);
  info->err->format_message(info, reading->message);
  std::longjmp(reading->failed, 1);
}
// Level -1 is a warning. Of these only the missing rest of a file is an error, as for Pillow:
// libjpeg would make up the pixels.
static void jpeg_said(j_common_ptr info, int level) {
  if (level == -1 && info->err->msg_code == JWRN_JPEG_EOF) jpeg_failed(info);
}
static void jpeg_prints_nothing(j_common_ptr) {}
static void jpeg_goes_on(j_common_ptr info) {
  auto* reading = static_cast<JpegReading*>(info->client_data);
  if (reading->info.input_scan_number > kMaxScans) {
    info->err->msg_code = JERR_BAD_PROGRESSION;
    jpeg_failed(info);
  }
}
}

// Up to the size of the image.
bool begin(JpegReading& reading, std::string_view bytes) {
  jpeg_decompress_struct& info = reading.info;
  info.err = jpeg_std_error(&reading.errors);
  reading.errors.error_exit = jpeg_failed;
  reading.errors.emit_message = jpeg_said;
  reading.errors.output_message = jpeg_prints_nothing;
  info.client_data = &reading;
  if (setjmp(reading.failed)) return false;
  jpeg_create_decompress(&info);
  reading.progress.progress_monitor = jpeg_goes_on;
  info.progress = &reading.progress;
  jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  jpeg_read_header(&info, TRUE);
  info.out_color_space = info.num_components == 1   ? JCS_GRAYSCALE
                         : info.num_components == 4 ? JCS_CMYK
                                                    : JCS_RGB;
  jpeg_calc_output_dimensions(&info);
  return true;
}

bool read_rows(JpegReading& reading, std::uint8_t* samples, std::size_t row_bytes) {
  if (setjmp(reading.failed)) return false;
  jpeg_decompress_struct& info = reading.info;
  jpeg_start_decompress(&info);
  while (info.output_scanline < info.output_height) {
    JSAMPROW row = samples + info.output_scanline * row_bytes;
    jpeg_read_scanlines(&info, &row, 1);
  }
  jpeg_finish_decompress(&info);
  return true;
}

// Inks as files have them, 255 for none, and as Pillow turns them into light.
Pixels to_rgb(const Pixels& inks) {
  const auto product = [](int a, int b) {  // of shares of 255
    const int sum = a * b + 128;
    return ((sum >> 8) + sum) >> 8;
  };
  Pixels image{.channels = 3, .height = inks.height, .width = inks.width, .samples = {}};
  image.samples.reserve(inks.samples.size() / 4 * 3);
  for (std::size_t at = 0; at + 4 <= inks.samples.size(); at += 4) {
    const int light = inks.samples[at + 3];
    for (std::size_t ink = 0; ink < 3; ++ink)
      image.samples.push_back(
          static_cast<std::uint8_t>(light - product(255 - inks.samples[at + ink], light)));
  }
  return image;
}

}  // namespace

bool is_jpeg(std::string_view bytes) { return bytes.starts_with("\xff\xd8\xff"); }

Pixels decode_jpeg(const ImageFile& file) {
  JpegReading reading;
  const auto fail = [&] { fail_image(file, "JPEG", reading.message); };
  if (!begin(reading, file.bytes)) fail();
  const jpeg_decompress_struct& info = reading.info;
  Pixels image{.channels = info.output_components,
               .height = info.output_height,
               .width = info.output_width,
               .samples = {}};
  check_image_size(
      file, "JPEG", image.height, image.width,
      std::max(kFewPixels, static_cast<std::int64_t>(file.bytes.size()) * kMaxPixelsPerByte));
  if (image.channels != 1 && image.channels != 3 && image.channels != 4)
    fail_image(file, "JPEG", "its pixels have an unexpected number of samples");
  const auto row_bytes = static_cast<std::size_t>(image.width * image.channels);
  image.samples.resize(static_cast<std::size_t>(image.height) * row_bytes);
  if (!read_rows(reading, image.samples.data(), row_bytes)) fail();
  return image.channels == 4 ? to_rgb(image) : image;
}

}  // namespace pantala::io
