// Every change of the file system passes through here, one call for each: files are made, written,
// cut, synced, renamed and removed, folders are made. What a crash or a full disk can leave behind
// is what stands between two of these calls, so that a test that watches them can stop at each in
// turn (WatchedChanges).
//
// The calls give the system's error, which is 0 if all went well; what to say about it is the
// caller's business.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>
#include <system_error>

namespace pantala::io {

// Opens a file for writing with the flags of open(2), makes it if it is not there, and gives its
// descriptor, or -1 with errno.
int create_file(const std::filesystem::path& path, int flags);
// All of the bytes; an error may come after some of them.
std::error_code write_bytes(int descriptor, std::string_view bytes,
                            const std::filesystem::path& path);
// What was written is on the disk.
std::error_code sync_file(int descriptor, const std::filesystem::path& path);
// Closes a file that was written; the descriptor is gone in any case.
std::error_code close_file(int descriptor, const std::filesystem::path& path);
std::error_code cut_file(int descriptor, std::uint64_t bytes, const std::filesystem::path& path);
std::error_code rename_path(const std::filesystem::path& from, const std::filesystem::path& to);
// A file or an empty folder; one that is not there is no error.
std::error_code remove_path(const std::filesystem::path& path);
// With all that is in it, entry by entry.
std::error_code remove_tree(const std::filesystem::path& path);
// One that is there is no error.
std::error_code make_folder(const std::filesystem::path& path);
std::error_code make_folders(const std::filesystem::path& path);
// What was created, renamed or removed in a folder is durable after this.
std::error_code sync_names_in(const std::filesystem::path& folder);

enum class Change : std::uint8_t { create, write, sync, close, cut, rename, remove, make_folder };

// For tests: while it stands, the function is asked before each change (of a long write twice:
// before it, and when half of the bytes are written). It gives the error that the change is to fail
// with, or 0 to let it happen. One at a time, and not while other threads change files.
class WatchedChanges {
 public:
  using Watcher = std::function<int(Change change, const std::filesystem::path& path)>;
  explicit WatchedChanges(Watcher watcher);
  ~WatchedChanges();
  WatchedChanges(const WatchedChanges&) = delete;
  WatchedChanges& operator=(const WatchedChanges&) = delete;
};

}  // namespace pantala::io
