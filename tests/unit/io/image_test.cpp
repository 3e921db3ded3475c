// PNG and JPEG files of every kind, against what Pillow makes of them (tests/fixtures/images.json),
// and files that are refused.
#include "io/image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/json.h"
#include "pantala/error.h"
#include "support/data_files.h"
#include "support/errors.h"
#include "support/images.h"
#include "support/temporary.h"

namespace pantala::io {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using tests::message_of;

std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t at = 0; at < hex.size(); at += 2)
    bytes += static_cast<char>(std::stoi(hex.substr(at, 2), nullptr, 16));
  return bytes;
}
const std::vector<std::uint8_t>& values(const HostArray& array) {
  return std::get<std::vector<std::uint8_t>>(array.values);
}
std::string refusal(const std::string& bytes, const ImageOptions& options = {}) {
  return message_of<ParseError>([&] { decode_image(bytes, "x.png", options); });
}
const std::string kPng = tests::png_file({3, 4, 5}, tests::test_image(4, 5, 1, 2));
const std::string kJpeg = tests::jpeg_file({3, 20, 30}, tests::test_image(20, 30, 1, 2));

TEST(Image, pixels_are_those_of_pillow) {
  const Json json = read_json(std::filesystem::path(PANTALA_FIXTURES_DIR) / "images.json");
  int files = 0;
  for (const Json& file : json.at("files")) {
    const std::string bytes = from_hex(file.at("file")), name = file.at("name");
    const HostArray rgb = decode_image(bytes, name), gray = decode_image(bytes, name, {1});
    EXPECT_EQ(rgb.shape, (Shape{3, file.at("height"), file.at("width")})) << name;
    EXPECT_EQ(values(rgb), file.at("rgb").get<std::vector<std::uint8_t>>()) << name;
    EXPECT_EQ(gray.shape, (Shape{1, file.at("height"), file.at("width")})) << name;
    EXPECT_EQ(values(gray), file.at("gray").get<std::vector<std::uint8_t>>()) << name;
    ++files;
  }
  EXPECT_EQ(files, 20);
}

TEST(Image, the_content_says_what_it_is) {
  const tests::TemporaryFolder folder;
  tests::put_file(folder.file("really_a_png.jpg"), kPng);
  EXPECT_EQ(values(read_image(folder.file("really_a_png.jpg"))), tests::test_image(4, 5, 1, 2));
  EXPECT_EQ(read_image(folder.file("really_a_png.jpg")).shape, (Shape{3, 4, 5}));
}

TEST(Image, other_files_are_refused) {
  EXPECT_EQ(refusal(""), "x.png: neither a PNG nor a JPEG image: the file is empty");
  EXPECT_EQ(refusal("GIF89a..."),
            "x.png: neither a PNG nor a JPEG image: it begins with 47 49 46 38");
  EXPECT_EQ(refusal("\x89"), "x.png: neither a PNG nor a JPEG image: it begins with 89");
  EXPECT_THROW(read_image("/nowhere/x.png"), IoError);
  EXPECT_THROW(decode_image(kPng, "x.png", {2}), TypeError);
}

TEST(Image, cut_off_files_are_refused) {
  for (std::size_t length = 8; length < kPng.size(); ++length)
    EXPECT_THAT(refusal(kPng.substr(0, length)), HasSubstr("x.png: not a whole PNG image: "))
        << length;
  for (const std::string& jpeg :
       {kJpeg, tests::jpeg_file({3, 20, 30}, tests::test_image(20, 30, 1, 2), true)})
    for (std::size_t length = 3; length + 2 < jpeg.size(); ++length)
      EXPECT_THAT(refusal(jpeg.substr(0, length)), HasSubstr("x.png: not a whole JPEG image: "))
          << length;
  EXPECT_EQ(refusal(kPng.substr(0, 40)), "x.png: not a whole PNG image: the file ends too early");
  EXPECT_EQ(refusal(kJpeg.substr(0, kJpeg.size() / 2)),
            "x.png: not a whole JPEG image: Premature end of JPEG file");
}

TEST(Image, damaged_pixels_of_png_are_refused) {
  std::string damaged = kPng;
  damaged[damaged.find("IDAT") + 9] ^= 0x10;
  EXPECT_THAT(refusal(damaged), HasSubstr("x.png: not a whole PNG image: IDAT: "));
}

TEST(Image, nothing_is_printed) {
  testing::internal::CaptureStderr();
  // Extraneous bytes before a marker: libjpeg warns, Pillow reads on.
  std::string odd = kJpeg;
  odd.insert(20, "abc");
  EXPECT_EQ(decode_image(odd, "odd.jpg").shape, (Shape{3, 20, 30}));
  EXPECT_NE(refusal(kJpeg.substr(0, 300)), "no error");
  EXPECT_NE(refusal(kPng.substr(0, 50)), "no error");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Image, bombs_are_refused_before_memory_is_taken) {
  const std::string few(200, '\0');
  EXPECT_EQ(refusal(tests::png_file({.width = 9000, .height = 9000}, few)),
            "x.png: not a whole PNG image: it says that it has 9000 x 9000 pixels, which 69 bytes "
            "cannot hold");
  EXPECT_EQ(refusal(tests::png_file({.width = 900000, .height = 900000}, few)),
            "x.png: 900000 x 900000 pixels are more than the limit of 89478485 pixels");
  EXPECT_EQ(refusal(kPng, {.max_pixels = 19}),
            "x.png: 5 x 4 pixels are more than the limit of 19 pixels");
  std::string jpeg = kJpeg;
  const std::size_t frame = jpeg.find("\xff\xc0");
  jpeg.replace(frame + 5, 4, "\x20\x00\x20\x00", 4);
  EXPECT_EQ(refusal(jpeg),
            "x.png: not a whole JPEG image: it says that it has 8192 x 8192 pixels, which " +
                std::to_string(jpeg.size()) + " bytes cannot hold");
}

}  // namespace
}  // namespace pantala::io
