// A file in the memory of the process: mapped read-only and private, so that only what is looked at
// is read. Its size is what it was when it was opened; touching pages behind the end of a file that
// was cut off since then would end the process (SIGBUS), so whoever hands bytes out asks
// check_size() first. A file that is replaced by a rename stays what it was.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "io/file.h"

namespace pantala::io {

class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const FileReader& file() const { return file_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  // IoError if the file is shorter than it was.
  void check_size() const;

 private:
  FileReader file_;
  std::span<const std::byte> bytes_;
};

}  // namespace pantala::io
