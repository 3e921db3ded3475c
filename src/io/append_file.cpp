#include "io/append_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "io/file.h"
#include "io/file_changes.h"
#include "io/system_error.h"
#include "pantala/error.h"

namespace pantala::io {

AppendFile::AppendFile(std::filesystem::path path, std::uint64_t keep) : path_(std::move(path)) {
  // Without O_NONBLOCK the opening of a pipe without a reader would wait for ever.
  descriptor_ = create_file(path_, O_WRONLY | O_APPEND | O_NONBLOCK | O_CLOEXEC);
  if (descriptor_ < 0) fail(path_, "write", errno);
  try {
    struct stat info{};
    if (::fstat(descriptor_, &info) != 0) fail(path_, "write", errno);
    if (!S_ISREG(info.st_mode))
      throw IoError(fmt::format("{}: not a regular file", path_.string()));
    size_ = static_cast<std::uint64_t>(info.st_size);
    if (size_ > keep) {
      check_change(cut_file(descriptor_, keep, path_), path_, "cut");
      size_ = keep;
    }
    // The name of a new file is durable once its folder is on the disk.
    sync_folder(path_.has_parent_path() ? path_.parent_path() : ".");
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
  if (const std::error_code error = write_bytes(descriptor_, content, path_)) {
    // Half a record would spoil the file for its readers. If this fails too, the message below is
    // still the one that matters.
    cut_file(descriptor_, size_, path_);
    check_change(error, path_, "write");
  }
  size_ += content.size();
}

void AppendFile::sync() { check_change(sync_file(descriptor_, path_), path_, "sync"); }

}  // namespace pantala::io
