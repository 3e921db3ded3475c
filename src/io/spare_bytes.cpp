#include "io/spare_bytes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "pantala/error.h"

namespace pantala::io {

namespace {

namespace fs = std::filesystem;

// -1 if there can be none: not every file system has files without a name.
int open_nameless(const fs::path& given) {
  std::error_code error;
  const fs::path folder = given.empty() ? fs::temp_directory_path(error) : given;
  if (error) return -1;
  return ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
}

[[noreturn]] void fail(const char* what) {
  throw IoError(fmt::format("values that were put aside cannot be {}: {}", what,
                            std::error_code(errno, std::generic_category()).message()));
}

// Repeats a transfer until all of it is done.
template <class Transfer>
void transfer(std::int64_t at, std::size_t size, const char* what, const Transfer& part) {
  for (std::size_t done = 0; done < size;) {
    const ssize_t count = part(done, at + static_cast<std::int64_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count == 0) errno = EIO;
    if (count <= 0) fail(what);
    done += static_cast<std::size_t>(count);
  }
}

}  // namespace

SpareBytes::~SpareBytes() {
  if (file_ >= 0) ::close(file_);
}

void SpareBytes::resize(std::int64_t bytes) {
  if (bytes > most_in_memory_ && file_ < 0) file_ = open_nameless(folder_);
  if (file_ < 0) memory_.resize(static_cast<std::size_t>(bytes));
}

void SpareBytes::write(std::int64_t at, std::span<const std::byte> bytes) {
  if (file_ < 0) {
    std::ranges::copy(bytes, memory_.begin() + at);
    return;
  }
  transfer(at, bytes.size(), "written", [&](std::size_t done, std::int64_t place) {
    return ::pwrite(file_, bytes.data() + done, bytes.size() - done, place);
  });
}

void SpareBytes::read(std::int64_t at, std::span<std::byte> bytes) const {
  if (file_ < 0) {
    std::copy_n(memory_.begin() + at, bytes.size(), bytes.begin());
    return;
  }
  transfer(at, bytes.size(), "read", [&](std::size_t done, std::int64_t place) {
    return ::pread(file_, bytes.data() + done, bytes.size() - done, place);
  });
}

}  // namespace pantala::io
