// Images in PNG and JPEG files, as planes of bytes. They are what Pillow gives, converted to RGB
// (or L): alpha is dropped, palettes become colours, CMYK becomes RGB; gamma, colour profiles and
// the orientation that a camera noted are not applied. One difference: of 16 bits per sample the
// upper 8 are kept, where Pillow makes everything above 255 white in gray images.
//
// Files may be hostile: sizes are checked before memory is taken, against a limit and against what
// so many bytes can hold; every refusal is a ParseError that names the file. Nothing is printed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "io/host_array.h"

namespace pantala::io {

struct ImageOptions {
  std::int64_t channels = 3;  // 1: gray, 3: red, green and blue
  // Larger ones are refused; where Pillow begins to warn.
  std::int64_t max_pixels = 89'478'485;
};

// u8 [channels, height, width]. The content decides which format it is, not the file's name.
HostArray read_image(const std::filesystem::path& path, const ImageOptions& options = {});
// `name` is the file's, for messages.
HostArray decode_image(std::string_view bytes, const std::string& name,
                       const ImageOptions& options = {});

}  // namespace pantala::io
