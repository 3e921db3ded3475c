// The IDX reader, plain and compressed, on good files and on damaged ones.
#include "io/idx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "io/file.h"
#include "pantala/error.h"
#include "support/data_files.h"
#include "support/errors.h"
#include "support/temporary.h"

namespace pantala::io {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using tests::gzip;
using tests::idx_head;

class Idx : public testing::Test {
 protected:
  HostArray read(const std::string& content) const {
    write_file(path_, content);
    return read_idx(path_);
  }
  std::string refusal(const std::string& content) const {
    std::string message = tests::message_of<ParseError>([&] { read(content); });
    EXPECT_THAT(message, testing::StartsWith(path_.string() + ": "));
    return message;
  }

  const tests::TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_.path() / "file";
};

TEST_F(Idx, reads_bytes_plain_and_compressed) {
  const std::string content = idx_head(8, {2, 3}) + std::string("\x00\x01\x02\x03\xfe\xff", 6);
  for (const std::string& form : {content, gzip(content)}) {
    const HostArray array = read(form);
    EXPECT_EQ(array.shape, (Shape{2, 3}));
    EXPECT_EQ(array.dtype(), u8);
    EXPECT_THAT(std::get<std::vector<std::uint8_t>>(array.values),
                ElementsAre(0, 1, 2, 3, 254, 255));
  }
}

TEST_F(Idx, reads_other_types_big_endian) {
  EXPECT_THAT(std::get<std::vector<std::int32_t>>(
                  read(idx_head(0x09, {2}) + std::string("\x01\xff", 2)).values),
              ElementsAre(1, -1));
  EXPECT_THAT(std::get<std::vector<std::int32_t>>(
                  read(idx_head(0x0B, {2}) + std::string("\x01\x02\xff\xff", 4)).values),
              ElementsAre(258, -1));
  EXPECT_THAT(std::get<std::vector<std::int32_t>>(
                  read(idx_head(0x0C, {1}) + std::string("\x00\x01\x00\x02", 4)).values),
              ElementsAre(65538));
  EXPECT_THAT(std::get<std::vector<float>>(
                  read(idx_head(0x0D, {1}) + std::string("\x3f\xc0\x00\x00", 4)).values),
              ElementsAre(1.5f));
  EXPECT_THAT(
      std::get<std::vector<double>>(
          read(idx_head(0x0E, {1}) + std::string("\xc0\x04\x00\x00\x00\x00\x00\x00", 8)).values),
      ElementsAre(-2.5));
}

TEST_F(Idx, empty_arrays_and_scalars) {
  EXPECT_EQ(read(idx_head(8, {0, 28, 28})).shape.numel(), 0);
  EXPECT_EQ(read(gzip(idx_head(8, {0}))).shape.numel(), 0);
  EXPECT_EQ(read(idx_head(8, {}) + "x").shape, Shape{});
}

TEST_F(Idx, refuses_damaged_headers) {
  EXPECT_THAT(refusal(""), HasSubstr("not an IDX file"));
  EXPECT_THAT(refusal("PNG and so on"), HasSubstr("not an IDX file"));
  EXPECT_THAT(refusal(idx_head(7, {1}) + "x"), HasSubstr("unknown IDX element type 0x07"));
  EXPECT_THAT(refusal(idx_head(8, {1, 2}).substr(0, 10)), HasSubstr("ends within the 2 sizes"));
  EXPECT_THAT(refusal(idx_head(8, {1, 1, 1, 1, 1, 1, 1, 1, 1}) + "x"), HasSubstr("byte 4"));
  EXPECT_THAT(refusal(idx_head(8, {0xffffffff, 0xffffffff, 0xffffffff})), HasSubstr("byte 4"));
}

TEST_F(Idx, refuses_other_amounts_than_promised) {
  for (const bool compressed : {false, true}) {
    const auto form = [&](const std::string& content) {
      return compressed ? gzip(content) : content;
    };
    EXPECT_THAT(refusal(form(idx_head(8, {4}) + "abc")),
                HasSubstr("promises 4 bytes of elements, the file has 3"));
    EXPECT_THAT(refusal(form(idx_head(8, {4}) + "abcde")), HasSubstr("more than the 4 bytes"));
    // Four gigabytes are promised, hardly anything is there: no such memory is taken.
    EXPECT_THAT(refusal(form(idx_head(8, {0xffffffff}) + "abc")), HasSubstr("the file has 3"));
  }
}

TEST_F(Idx, refuses_more_than_the_limit) {
  write_file(path_, idx_head(0x0E, {0xffffffff}));
  EXPECT_THROW(read_idx(path_), ParseError);
  write_file(path_, idx_head(8, {100}) + std::string(100, 'x'));
  EXPECT_THROW(read_idx(path_, 99), ParseError);
  EXPECT_EQ(read_idx(path_, 100).shape.numel(), 100);
}

TEST_F(Idx, stops_inflating_where_the_header_says) {
  // A bomb: a megabyte of zeros behind a promise of four bytes.
  EXPECT_THAT(refusal(gzip(idx_head(8, {4}) + std::string(1 << 20, '\0'))),
              HasSubstr("more than the 4 bytes"));
}

TEST_F(Idx, refuses_damaged_streams) {
  const std::string good =
      gzip(idx_head(8, {1000}) + std::string(500, 'a') + std::string(500, 'b'));
  EXPECT_EQ(read(good).shape.numel(), 1000);
  for (std::size_t length = 2; length < good.size(); ++length)
    EXPECT_THAT(refusal(good.substr(0, length)), HasSubstr("gzip")) << length;
  std::string checksum = good;
  checksum[good.size() - 6] = static_cast<char>(checksum[good.size() - 6] ^ 1);
  EXPECT_THAT(refusal(checksum), HasSubstr("gzip"));
  EXPECT_THAT(refusal(good + "x"), HasSubstr("after the end"));
  EXPECT_THAT(refusal("\x1f\x8bnonsense"), HasSubstr("gzip"));
}

TEST_F(Idx, missing_file_is_an_io_error) {
  EXPECT_THROW(read_idx(path_.string() + "-nothing"), IoError);
}

}  // namespace
}  // namespace pantala::io
