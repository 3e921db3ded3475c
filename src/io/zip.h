// Zip archives, as far as NPZ files need them: the directory, and entries that are stored or
// deflated. Sizes beyond 4 GiB (zip64) are read; encrypted and split archives are not. Every field
// is held against the file's size before it is used, and an entry against its checksum.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "io/byte_source.h"

namespace pantala::io {

class ZipArchive {
 public:
  struct Entry {
    std::string name;
    std::uint16_t flags = 0, method = 0;
    std::uint32_t checksum = 0;
    std::uint64_t packed_bytes = 0, bytes = 0, place = 0;
  };

  // IoError, ParseError or UnsupportedError.
  explicit ZipArchive(const std::filesystem::path& path);

  const std::vector<Entry>& entries() const { return entries_; }
  // The entry's bytes. The archive must outlive the source. UnsupportedError for an entry that is
  // encrypted or packed in another way.
  std::unique_ptr<ByteSource> open(const Entry& entry) const;

 private:
  FileReader file_;
  std::vector<Entry> entries_;
};

}  // namespace pantala::io
