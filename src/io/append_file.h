// A file that only grows at its end, for logs that are read while they are written. What append()
// was given is there wholly, or after an IoError not at all; after sync() it survives a crash.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace pantala::io {

class AppendFile {
 public:
  // Opens or creates the file and cuts it to its first `keep` bytes, if it has more.
  AppendFile(std::filesystem::path path, std::uint64_t keep);
  ~AppendFile();
  AppendFile(AppendFile&& other) noexcept;
  AppendFile& operator=(AppendFile&& other) noexcept;
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::uint64_t size() const { return size_; }
  void append(std::string_view content);
  void sync();

 private:
  std::filesystem::path path_;
  std::uint64_t size_ = 0;
  int descriptor_ = -1;
};

}  // namespace pantala::io
