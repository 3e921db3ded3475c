// Files of data in memory, good ones, for tests that read and damage them.
#pragma once
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdint>
#include <string>
#include <vector>

namespace pantala::tests {

// Replaces the file's content. Not synced, unlike io::write_file, and never truncated before it is
// written, which some file systems answer with a sync: tests do this thousands of times.
inline void put_file(const std::string& path, const std::string& content) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_GE(descriptor, 0);
  ASSERT_EQ(::write(descriptor, content.data(), content.size()),
            static_cast<ssize_t>(content.size()));
  ASSERT_EQ(::ftruncate(descriptor, static_cast<off_t>(content.size())), 0);
  ::close(descriptor);
}

// `window`: as zlib has it; MAX_WBITS + 16 for gzip, -MAX_WBITS for the raw form of zip archives.
inline std::string deflated(const std::string& text, int window) {
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}
inline std::string gzip(const std::string& text) { return deflated(text, MAX_WBITS + 16); }

// A number's bytes, the lowest first.
inline std::string little(std::uint64_t value, int bytes) {
  std::string text;
  for (int k = 0; k < bytes; ++k) text += static_cast<char>(k < 8 ? value >> (8 * k) & 255 : 0);
  return text;
}
inline std::string big(std::uint64_t value, int bytes) {
  const std::string text = little(value, bytes);
  return {text.rbegin(), text.rend()};
}

// The head of an IDX file: type, rank, sizes.
inline std::string idx_head(unsigned type, const std::vector<std::uint32_t>& sizes) {
  std::string text{'\0', '\0', static_cast<char>(type), static_cast<char>(sizes.size())};
  for (const std::uint32_t size : sizes) text += big(size, 4);
  return text;
}

// The head of an NPY file of version 1 with this dictionary, padded as NumPy does.
inline std::string npy_head(std::string dictionary) {
  while ((10 + dictionary.size() + 1) % 64 != 0) dictionary += ' ';
  dictionary += '\n';
  return std::string("\x93NUMPY\x01\x00", 8) + little(dictionary.size(), 2) + dictionary;
}
inline std::string npy_head(const std::string& descr, const std::string& shape,
                            bool fortran = false) {
  return npy_head(fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}", descr,
                              fortran ? "True" : "False", shape));
}

struct ZipPart {
  std::string name, content;
  bool deflate = false;
  bool zip64 = false;  // sizes in the extra field, as NumPy writes them into local headers
};
inline std::string zip(const std::vector<ZipPart>& parts) {
  std::string archive, directory;
  for (const ZipPart& part : parts) {
    const std::string packed = part.deflate ? deflated(part.content, -MAX_WBITS) : part.content;
    const auto checksum =
        crc32(crc32(0, nullptr, 0), reinterpret_cast<const Bytef*>(part.content.data()),
              static_cast<uInt>(part.content.size()));
    const std::string extra = part.zip64
                                  ? little(1, 2) + little(16, 2) + little(part.content.size(), 8) +
                                        little(packed.size(), 8)
                                  : "";
    const std::string sizes = part.zip64
                                  ? little(0xFFFFFFFFFFFFFFFF, 8)
                                  : little(packed.size(), 4) + little(part.content.size(), 4);
    // Version, flags, method, time and date, checksum, sizes, lengths of name and extra field.
    const std::string common = little(20, 2) + little(0, 2) + little(part.deflate ? 8 : 0, 2) +
                               little(0, 4) + little(checksum, 4) + sizes +
                               little(part.name.size(), 2) + little(extra.size(), 2);
    directory += little(0x02014b50, 4) + little(20, 2) + common + little(0, 10) +
                 little(archive.size(), 4) + part.name + extra;
    archive += little(0x04034b50, 4) + common + part.name + extra + packed;
  }
  return archive + directory + little(0x06054b50, 4) + little(0, 4) + little(parts.size(), 2) +
         little(parts.size(), 2) + little(directory.size(), 4) + little(archive.size(), 4) +
         little(0, 2);
}

}  // namespace pantala::tests
