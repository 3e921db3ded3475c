// Bytes that are put aside and read back by the same process: in memory if they are few, else in a
// file without a name, which nobody else sees and which goes with the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace pantala::io {

class SpareBytes {
 public:
  // Files are made in `folder`; "": the system's folder for temporary files.
  SpareBytes(std::int64_t most_in_memory, std::filesystem::path folder = {})
      : most_in_memory_(most_in_memory), folder_(std::move(folder)) {}
  ~SpareBytes();
  SpareBytes(const SpareBytes&) = delete;
  SpareBytes& operator=(const SpareBytes&) = delete;

  // Room for so many; what was there is lost. Where no file can be made they are kept in memory.
  void resize(std::int64_t bytes);
  // IoError if the disk is full.
  void write(std::int64_t at, std::span<const std::byte> bytes);
  void read(std::int64_t at, std::span<std::byte> bytes) const;
  bool in_file() const { return file_ >= 0; }

 private:
  const std::int64_t most_in_memory_;
  const std::filesystem::path folder_;
  std::vector<std::byte> memory_;
  int file_ = -1;
};

}  // namespace pantala::io
