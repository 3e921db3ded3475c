// Files: bounded reads and atomic writes. Every failure is an IoError that names the file and the
// system's reason.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace pantala::io {

// An open file that is read at given places. Its size is what it was when it was opened.
class FileReader {
 public:
  explicit FileReader(std::filesystem::path path);
  ~FileReader();
  FileReader(FileReader&& other) noexcept;
  FileReader& operator=(FileReader&& other) noexcept;
  FileReader(const FileReader&) = delete;
  FileReader& operator=(const FileReader&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::uint64_t size() const { return size_; }
  std::uint64_t current_size() const;
  int descriptor() const { return descriptor_; }
  // Fills `out` with the bytes from `offset` on; IoError if the file ends before.
  void read_at(std::uint64_t offset, std::span<char> out) const;

 private:
  std::filesystem::path path_;
  std::uint64_t size_ = 0;
  int descriptor_ = -1;
};

inline constexpr std::uint64_t kMaxTextBytes = std::uint64_t{64} << 20;

// The whole file; IoError if it is larger than `limit` bytes, before any memory is taken.
std::string read_file(const std::filesystem::path& path, std::uint64_t limit = kMaxTextBytes);

// Replaces the file by `content` in one step: a temporary file in the same folder is written,
// synced and renamed, so that a crash leaves either the old file or the new one.
void write_file(const std::filesystem::path& path, std::string_view content);
// The same for content in several parts, which are written one after the other.
void write_file(const std::filesystem::path& path, std::span<const std::string_view> parts);

// What was created, renamed or removed in a folder is durable after this.
void sync_folder(const std::filesystem::path& folder);

}  // namespace pantala::io
