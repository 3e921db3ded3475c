#include "io/mapped_file.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "pantala/error.h"

namespace pantala::io {

MappedFile::MappedFile(const std::filesystem::path& path) : file_(path) {
  if (file_.size() == 0) return;  // nothing to map, and mmap refuses it
  void* const memory = ::mmap(nullptr, file_.size(), PROT_READ, MAP_PRIVATE, file_.descriptor(), 0);
  if (memory == MAP_FAILED)
    throw IoError(fmt::format("{}: cannot map {} bytes: {}", path.string(), file_.size(),
                              std::strerror(errno)));
  bytes_ = {static_cast<const std::byte*>(memory), file_.size()};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

void MappedFile::check_size() const {
  if (const std::uint64_t now = file_.current_size(); now < file_.size())
    throw IoError(fmt::format("{}: the file had {} bytes when it was opened and has {} now",
                              file_.path().string(), file_.size(), now));
}

}  // namespace pantala::io
