// PNG and JPEG files in memory, good ones, for tests that read and damage them.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "pantala/shape.h"

namespace pantala::tests {

// A chunk of a PNG file, with its checksum.
std::string png_chunk(const std::string& type, const std::string& content);
// What IHDR says; the colour type and its depth as the format has them.
struct PngHead {
  std::uint32_t width = 0, height = 0;
  std::uint8_t depth = 8, color = 2, interlace = 0;
};
// `rows`: as they are compressed, each with its filter byte. `extra`: chunks before them.
std::string png_file(const PngHead& head, const std::string& rows, const std::string& extra = "");
// A png of u8 planes [channels, height, width], 1 or 3 channels.
std::string png_file(const Shape& shape, const std::vector<std::uint8_t>& planes);
std::string jpeg_file(const Shape& shape, const std::vector<std::uint8_t>& planes,
                      bool progressive = false);

// An image of 3 channels that differs from others of another number; its left third is of the
// `label`, so that models can learn it.
std::vector<std::uint8_t> test_image(std::int64_t height, std::int64_t width, std::int64_t label,
                                     std::int64_t number);

}  // namespace pantala::tests
