#include "io/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <utility>

#include "io/file_changes.h"
#include "io/system_error.h"
#include "io/temporary_files.h"
#include "pantala/error.h"

namespace pantala::io {

namespace {

// Closes its descriptor unless it was taken out.
class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return value_; }
  int take() { return std::exchange(value_, -1); }

 private:
  int value_;
};

// A new file in `folder` that no other process has, and its descriptor. Names left by a crashed
// process are passed over.
std::pair<std::filesystem::path, int> create_beside(const std::filesystem::path& path,
                                                    const std::filesystem::path& folder) {
  static std::atomic<unsigned> counter = 0;
  for (int attempt = 0; attempt < 1000; ++attempt) {
    std::filesystem::path temporary = folder / temporary_name(path.filename().string(), counter++);
    const int descriptor = create_file(temporary, O_WRONLY | O_EXCL | O_CLOEXEC);
    if (descriptor >= 0) return {std::move(temporary), descriptor};
    if (errno != EEXIST) fail(path, "write", errno);
  }
  fail(path, "write", EEXIST);
}

}  // namespace

void sync_folder(const std::filesystem::path& folder) {
  check_change(sync_names_in(folder), folder, "sync");
}

FileReader::FileReader(std::filesystem::path path) : path_(std::move(path)) {
  // Without O_NONBLOCK the opening of a pipe without a writer would wait for ever.
  Descriptor descriptor(::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (descriptor.get() < 0) fail(path_, "open", errno);
  struct stat info{};
  if (::fstat(descriptor.get(), &info) != 0) fail(path_, "open", errno);
  if (!S_ISREG(info.st_mode)) throw IoError(fmt::format("{}: not a regular file", path_.string()));
  size_ = static_cast<std::uint64_t>(info.st_size);
  descriptor_ = descriptor.take();
}

FileReader::~FileReader() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

FileReader::FileReader(FileReader&& other) noexcept
    : path_(std::move(other.path_)),
      size_(other.size_),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

FileReader& FileReader::operator=(FileReader&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(size_, other.size_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

std::uint64_t FileReader::current_size() const {
  struct stat info{};
  if (::fstat(descriptor_, &info) != 0) fail(path_, "read", errno);
  return static_cast<std::uint64_t>(info.st_size);
}

void FileReader::read_at(std::uint64_t offset, std::span<char> out) const {
  if (offset > size_ || out.size() > size_ - offset)
    throw IoError(fmt::format("{}: cannot read {} bytes at {}: the file has {}", path_.string(),
                              out.size(), offset, size_));
  while (!out.empty()) {
    const ssize_t count = ::pread(descriptor_, out.data(), out.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(path_, "read", errno);
    if (count == 0)
      throw IoError(fmt::format("{}: the file became shorter while it was read", path_.string()));
    offset += static_cast<std::uint64_t>(count);
    out = out.subspan(static_cast<std::size_t>(count));
  }
}

std::string read_file(const std::filesystem::path& path, std::uint64_t limit) {
  const FileReader file(path);
  if (file.size() > limit)
    throw IoError(fmt::format("{}: the file has {} bytes, more than the limit of {}", path.string(),
                              file.size(), limit));
  std::string content(file.size(), '\0');
  file.read_at(0, content);
  return content;
}

void write_file(const std::filesystem::path& path, std::string_view content) {
  write_file(path, std::span(&content, 1));
}

void write_file(const std::filesystem::path& path, std::span<const std::string_view> parts) {
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  const auto [temporary, opened] = create_beside(path, folder);
  Descriptor descriptor(opened);
  try {
    for (const std::string_view part : parts)
      check_change(write_bytes(descriptor.get(), part, temporary), path, "write");
    check_change(sync_file(descriptor.get(), temporary), path, "sync");
    check_change(close_file(descriptor.take(), temporary), path, "write");
    check_change(rename_path(temporary, path), path, "write");
  } catch (...) {
    remove_path(temporary);
    throw;
  }
  sync_folder(folder);
}

}  // namespace pantala::io
