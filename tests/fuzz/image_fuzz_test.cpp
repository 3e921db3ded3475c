// Images under damage: changed at random, with parts of others, and with sizes that lie. A file may
// be refused with a ParseError; anything else (a crash, another exception, memory that the file's
// size does not explain, undefined behaviour under the sanitizers) is a bug.
#include <gtest/gtest.h>

#include <random>

#include "io/image.h"
#include "pantala/error.h"
#include "support/allocations.h"
#include "support/data_files.h"
#include "support/images.h"

namespace pantala::io::image_fuzz_test {
namespace {

constexpr int kTrials = 20000;
// Images of a few hundred bytes hold at most so many pixels and, with them, planes.
constexpr std::size_t kMaxAllocation = std::size_t{16} << 20;

class ImageFuzz : public testing::Test {
 protected:
  // True if the file was taken.
  static bool survives(const std::string& content) {
    tests::reset_largest_allocation();
    bool taken = false;
    try {
      const HostArray image = decode_image(content, "fuzz");
      EXPECT_EQ(std::get<std::vector<std::uint8_t>>(image.values).size(),
                static_cast<std::size_t>(image.shape.numel()));
      taken = true;
    } catch (const ParseError&) {
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what() << "\nfile: " << testing::PrintToString(content);
    }
    EXPECT_LT(tests::allocations().largest, kMaxAllocation) << testing::PrintToString(content);
    return taken;
  }

  void change(std::string& content, const std::vector<std::string>& corpus) {
    const std::size_t at = random_() % content.size();
    switch (random_() % 6) {
      case 0:
        content[at] = static_cast<char>(content[at] ^ 1 << random_() % 8);
        break;
      case 1:
        content[at] = static_cast<char>(random_());
        break;
      case 2:  // sizes and lengths stand in two or four bytes
        content.replace(at, 4, tests::big(random_() % 3 == 0 ? 0xFFFFFFFF : random_() % 70000, 4));
        break;
      case 3:
        content.resize(std::max<std::size_t>(at, 9));
        break;
      case 4:
        content.erase(at, 1 + random_() % 20);
        break;
      default: {
        const std::string& other = corpus[random_() % corpus.size()];
        content.insert(at, other.substr(random_() % other.size(), random_() % 60));
      }
    }
    if (content.size() < 9) content = corpus[0];
  }

  // Checksums that fit again: what stands behind them is reached.
  static std::string with_checksums(const std::string& png) {
    std::string fixed = png.substr(0, 8);
    for (std::size_t at = 8; at + 12 <= png.size();) {
      std::size_t length = 0;
      for (std::size_t k = 0; k < 4; ++k)
        length = length << 8 | static_cast<unsigned char>(png[at + k]);
      if (length > png.size() - at - 12) return fixed + png.substr(at);
      fixed += tests::png_chunk(png.substr(at + 4, 4), png.substr(at + 8, length));
      at += 12 + length;
    }
    return fixed;
  }

  std::mt19937 random_{20240};
};

TEST_F(ImageFuzz, png) {
  const std::string rows = [] {
    std::string text;
    for (int row = 0; row < 9; ++row) text += "\2" + std::string(16, static_cast<char>(row * 9));
    return text;
  }();
  const std::string palette =
      tests::png_chunk("PLTE", std::string(3 * 16, '\x55')) + tests::png_chunk("tRNS", "\x10\x20");
  const std::vector<std::string> corpus = {
      tests::png_file({3, 7, 5}, tests::test_image(7, 5, 1, 2)),
      tests::png_file({.width = 16, .height = 9, .depth = 8, .color = 0}, rows,
                      tests::png_chunk("gAMA", tests::big(45455, 4)) +
                          tests::png_chunk("tEXt", std::string("a\0b", 3))),
      tests::png_file({.width = 16, .height = 9, .depth = 8, .color = 3}, rows, palette),
      tests::png_file({.width = 32, .height = 9, .depth = 4, .color = 3}, rows, palette),
      tests::png_file({.width = 4, .height = 9, .depth = 8, .color = 6}, rows),
      tests::png_file({.width = 8, .height = 9, .depth = 16, .color = 0, .interlace = 0}, rows),
      tests::png_file({.width = 8, .height = 8, .depth = 8, .color = 0, .interlace = 1},
                      rows + rows),
  };
  for (const std::string& file : corpus) survives(file);
  ASSERT_TRUE(survives(corpus[0]));
  int taken = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::string content = corpus[random_() % corpus.size()];
    for (std::uint64_t times = 1 + random_() % 4; times > 0; --times) change(content, corpus);
    taken += survives(trial % 2 == 0 ? content : with_checksums(content));
  }
  EXPECT_GT(taken, 100);
}

TEST_F(ImageFuzz, jpeg) {
  const auto pixels = tests::test_image(20, 24, 1, 2);
  const std::vector<std::string> corpus = {
      tests::jpeg_file({3, 20, 24}, pixels), tests::jpeg_file({3, 20, 24}, pixels, true),
      tests::jpeg_file({1, 20, 24}, std::vector<std::uint8_t>(480, 77)),
      tests::jpeg_file({1, 20, 24}, std::vector<std::uint8_t>(480, 77), true)};
  for (const std::string& file : corpus) ASSERT_TRUE(survives(file));
  int taken = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::string content = corpus[random_() % corpus.size()];
    for (std::uint64_t times = 1 + random_() % 4; times > 0; --times) change(content, corpus);
    taken += survives(content);
  }
  EXPECT_GT(taken, 100);
}

}  // namespace
}  // namespace pantala::io::image_fuzz_test
