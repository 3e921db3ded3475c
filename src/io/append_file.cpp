#include "io/append_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "io/system_error.h"
#include "pantala/error.h"

namespace pantala::io {

namespace {

// The name of a new file is durable once its folder is on disk.
void sync_folder_of(const std::filesystem::path& path) {
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool synced = descriptor >= 0 && ::fsync(descriptor) == 0;
  const int error = errno;
  if (descriptor >= 0) ::close(descriptor);
  if (!synced) fail(folder, "sync", error);
}

}  // namespace

AppendFile::AppendFile(std::filesystem::path path, std::uint64_t keep) : path_(std::move(path)) {
  // Without O_NONBLOCK the opening of a pipe without a reader would wait for ever.
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail(path_, "write", errno);
  try {
    struct stat info{};
    if (::fstat(descriptor_, &info) != 0) fail(path_, "write", errno);
    if (!S_ISREG(info.st_mode))
      throw IoError(fmt::format("{}: not a regular file", path_.string()));
    size_ = static_cast<std::uint64_t>(info.st_size);
    if (size_ > keep) {
      if (::ftruncate(descriptor_, static_cast<off_t>(keep)) != 0) fail(path_, "cut", errno);
      size_ = keep;
    }
    sync_folder_of(path_);
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

AppendFile::~AppendFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

AppendFile::AppendFile(AppendFile&& other) noexcept
    : path_(std::move(other.path_)),
      size_(other.size_),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

AppendFile& AppendFile::operator=(AppendFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(size_, other.size_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

void AppendFile::append(std::string_view content) {
  const std::uint64_t whole = size_ + content.size();
  while (!content.empty()) {
    const ssize_t count = ::write(descriptor_, content.data(), content.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      const int error = errno;
      // Half a record would spoil the file for its readers. If this fails too, the message below is
      // still the one that matters.
      static_cast<void>(!::ftruncate(descriptor_, static_cast<off_t>(size_)));
      fail(path_, "write", error);
    }
    content.remove_prefix(static_cast<std::size_t>(count));
  }
  size_ = whole;
}

void AppendFile::sync() {
  if (::fsync(descriptor_) != 0) fail(path_, "sync", errno);
}

}  // namespace pantala::io
