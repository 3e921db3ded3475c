#include "io/file_changes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "pantala/error.h"

namespace pantala::io {

namespace {

namespace fs = std::filesystem;

WatchedChanges::Watcher& watcher() {
  static WatchedChanges::Watcher shared;
  return shared;
}

std::error_code error_of(int number) { return {number, std::generic_category()}; }

// What the watcher wants to happen instead of the change.
int refusal(Change change, const fs::path& path) { return watcher() ? watcher()(change, path) : 0; }

// A call that gives -1 and errno if it fails.
template <class F>
std::error_code changed(Change change, const fs::path& path, F&& call) {
  if (const int error = refusal(change, path); error != 0) return error_of(error);
  return error_of(call() == 0 ? 0 : errno);
}

int write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return -1;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return 0;
}

}  // namespace

int create_file(const fs::path& path, int flags) {
  if (const int error = refusal(Change::create, path); error != 0) {
    errno = error;
    return -1;
  }
  return ::open(path.c_str(), flags | O_CREAT, 0666);
}

std::error_code write_bytes(int descriptor, std::string_view bytes, const fs::path& path) {
  constexpr std::size_t kTorn = 64;  // fewer bytes are hardly ever written in parts
  const std::size_t begin = watcher() && bytes.size() >= kTorn ? bytes.size() / 2 : 0;
  if (begin > 0) {
    const auto write_begin = [&] { return write_all(descriptor, bytes.substr(0, begin)); };
    if (const std::error_code error = changed(Change::write, path, write_begin)) return error;
  }
  return changed(Change::write, path, [&] { return write_all(descriptor, bytes.substr(begin)); });
}

std::error_code sync_file(int descriptor, const fs::path& path) {
  return changed(Change::sync, path, [&] { return ::fsync(descriptor); });
}

std::error_code close_file(int descriptor, const fs::path& path) {
  const int error = refusal(Change::close, path);
  const int closed = ::close(descriptor) == 0 ? 0 : errno;
  return error_of(error != 0 ? error : closed);
}

std::error_code cut_file(int descriptor, std::uint64_t bytes, const fs::path& path) {
  return changed(Change::cut, path,
                 [&] { return ::ftruncate(descriptor, static_cast<off_t>(bytes)); });
}

std::error_code rename_path(const fs::path& from, const fs::path& to) {
  return changed(Change::rename, from, [&] { return ::rename(from.c_str(), to.c_str()); });
}

std::error_code remove_path(const fs::path& path) {
  struct stat info{};
  if (::lstat(path.c_str(), &info) != 0) return error_of(errno == ENOENT ? 0 : errno);
  return changed(Change::remove, path, [&] {
    return S_ISDIR(info.st_mode) ? ::rmdir(path.c_str()) : ::unlink(path.c_str());
  });
}

std::error_code remove_tree(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(fs::symlink_status(path, error))) {
    std::vector<fs::path> entries;
    for (fs::directory_iterator entry(path, error), end; !error && entry != end;
         entry.increment(error))
      entries.push_back(entry->path());
    if (error) return error;
    for (const fs::path& entry : entries)
      if (error = remove_tree(entry); error) return error;
  }
  return remove_path(path);
}

std::error_code make_folder(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return {};
  return changed(Change::make_folder, path, [&] { return ::mkdir(path.c_str(), 0777); });
}

std::error_code make_folders(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return {};
  if (path.has_relative_path() && path.parent_path() != path)
    if (const fs::path parent = path.parent_path(); !parent.empty())
      if (error = make_folders(parent); error) return error;
  // "a/b/" ends with an empty name.
  return path.has_filename() ? make_folder(path) : std::error_code();
}

std::error_code sync_names_in(const fs::path& folder) {
  return changed(Change::sync, folder, [&] {
    const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return -1;
    const int synced = ::fsync(descriptor), error = errno;
    ::close(descriptor);
    errno = error;
    return synced;
  });
}

WatchedChanges::WatchedChanges(Watcher asked) {
  if (watcher()) throw InternalError("changes of files are watched twice");
  watcher() = std::move(asked);
}

WatchedChanges::~WatchedChanges() { watcher() = nullptr; }

}  // namespace pantala::io
