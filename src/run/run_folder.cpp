#include "run/run_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "base/text.h"
#include "io/file.h"
#include "io/file_changes.h"
#include "pantala/error.h"
#include "train/checkpoint_files.h"

namespace pantala::run {

namespace {

namespace fs = std::filesystem;

// A config.toml that begins so was written by write_config().
constexpr std::string_view kMark = "# The config of this run, as pantala train has written it.\n";
constexpr std::string_view kLockFile = "run.lock";

bool is_ours(const std::string& name) {
  for (const char* known :
       {"config.toml", "data.json", "cost-table.txt", "environment.json", "metrics.jsonl",
        "metrics.csv", "result.json", "model.safetensors", "checkpoints", "plots", "diverged"})
    if (name == known) return true;
  return name.starts_with("events.out.tfevents.");
}

// What a crash has left of a file of ours, or of a sweep's, that was being written:
// ".result.json.123-4.tmp".
bool is_leftover(const std::string& name) {
  constexpr std::string_view kEnd = ".tmp";
  if (!name.starts_with('.') || !name.ends_with(kEnd)) return false;
  const std::string of = name.substr(1, name.size() - 1 - kEnd.size());
  const std::string file = of.substr(0, of.rfind('.'));
  return is_ours(file) || file == kSweepFile;
}

// A name of that kind for what is to be removed.
fs::path leftover_of(const fs::path& entry) {
  return entry.parent_path() / fmt::format(".{}.removed.tmp", entry.filename().string());
}

// The entries of a folder that is there, of the names that are wanted.
std::vector<fs::path> entries_of(const fs::path& folder,
                                 const std::function<bool(const std::string& name)>& which) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error))
    if (which(entry->path().filename().string())) entries.push_back(entry->path());
  return entries;
}

// A temporary file of io::write_file(), in a folder where all files are a run's.
bool is_temporary(const std::string& name) {
  return name.starts_with('.') && name.ends_with(".tmp");
}

void remove_entry(const fs::path& entry) {
  if (const std::error_code error = io::remove_tree(entry))
    throw IoError(fmt::format("{} cannot be removed: {}", entry.string(), error.message()));
}

bool begins_with_mark(const fs::path& path) {
  const io::FileReader reader(path);
  if (reader.size() < kMark.size()) return false;
  std::string begin(kMark.size(), '\0');
  reader.read_at(0, begin);
  return begin == kMark;
}

}  // namespace

RunFolder::Content RunFolder::content() const {
  std::error_code error;
  const fs::file_status status = fs::status(root_, error);
  if (status.type() == fs::file_type::not_found) return Content::nothing;
  if (!fs::is_directory(status)) return Content::foreign;
  if (fs::exists(config_file(), error))
    return begins_with_mark(config_file()) ? Content::run : Content::foreign;
  fs::directory_iterator entries(root_, error);
  if (error) throw IoError(fmt::format("{}: {}", root_.string(), error.message()));
  for (const fs::directory_entry& entry : entries)
    if (entry.path().filename() != kLockFile && !is_leftover(entry.path().filename().string()))
      return Content::foreign;
  return Content::nothing;
}

bool RunFolder::has_run_files_alone() const {
  std::error_code error;
  if (!fs::is_directory(root_, error) || fs::exists(config_file(), error)) return false;
  for (const fs::directory_entry& entry : fs::directory_iterator(root_, error)) {
    const std::string name = entry.path().filename().string();
    if (name != kLockFile && !is_ours(name) && !is_leftover(name)) return false;
  }
  return !error;
}

RunConfig RunFolder::config() const { return make_config(read_toml_file(config_file())); }

void RunFolder::write_config(const RunConfig& config) const {
  io::write_file(config_file(), std::string(kMark) + write_toml(config));
}

bool RunFolder::has_checkpoint() const {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(checkpoints(), error))
    if (const std::string name = entry.path().filename().string();
        // The second is one that was about to be replaced when a crash came.
        name.starts_with("step-") || name.starts_with(".old-step-"))
      return true;
  return false;
}

void RunFolder::clear() const {
  // The config stays until the next one replaces it: as long as it is there, the folder is known to
  // be a run's.
  std::vector<fs::path> entries = entries_of(root_, [this](const std::string& name) {
    return is_ours(name) && name != config_file().filename();
  });
  // A crash in between must leave neither the result of a run whose model is gone, nor checkpoints
  // of a run whose data are not known any more.
  const auto rank = [this](const fs::path& entry) {
    return entry == result_file() ? 0 : entry == checkpoints() ? 1 : 2;
  };
  std::ranges::stable_sort(entries, std::ranges::less{}, rank);
  for (const fs::path& entry : entries) {
    if (const std::error_code error = io::rename_path(entry, leftover_of(entry)))
      throw IoError(fmt::format("{} cannot be removed: {}", entry.string(), error.message()));
    remove_entry(leftover_of(entry));
  }
}

std::vector<fs::path> RunFolder::leftovers() const {
  std::vector<fs::path> entries = entries_of(root_, is_leftover);
  for (const fs::path& folder : {plots(), diverged()})
    for (fs::path& entry : entries_of(folder, is_temporary)) entries.push_back(std::move(entry));
  return entries;
}

bool RunFolder::has_leftovers() const {
  return !leftovers().empty() || train::has_leftovers(checkpoints());
}

void RunFolder::remove_leftovers() const {
  for (const fs::path& entry : leftovers()) remove_entry(entry);
  train::put_right_all(checkpoints());
}

RunFolder open_run_folder(const std::string& path) {
  RunFolder folder(path);
  const RunFolder::Content content = folder.content();
  if (content == RunFolder::Content::run) return folder;
  throw IoError(fmt::format(
      "{} is {}; a run folder is what pantala train --out makes", path,
      content == RunFolder::Content::nothing ? "empty or not there" : "not the folder of a run"));
}

FolderLock::FolderLock(const RunFolder& folder) : root_(folder.root()) {
  if (const std::error_code error = io::make_folders(root_))
    throw IoError(
        fmt::format("the run folder {} cannot be made: {}", root_.string(), error.message()));
  const fs::path file = root_ / kLockFile;
  lock_ = io::create_file(file, O_RDWR | O_CLOEXEC);
  if (lock_ < 0) throw IoError(fmt::format("{}: {}", file.string(), std::strerror(errno)));
  if (::flock(lock_, LOCK_EX | LOCK_NB) != 0) {
    ::close(lock_);
    throw IoError(fmt::format(
        "another process is training in {}; wait for it, or choose another --out", root_.string()));
  }
  folder_ = ::open(root_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
}

FolderLock::~FolderLock() {
  if (folder_ >= 0) ::close(folder_);
  ::close(lock_);
}

// The folder itself is compared: whoever removes the file of the lock from it harms nothing that is
// to be saved.
void FolderLock::check_folder() const {
  struct stat ours{}, there{};
  if (::fstat(folder_, &ours) == 0 && ::stat(root_.c_str(), &there) == 0 &&
      ours.st_dev == there.st_dev && ours.st_ino == there.st_ino)
    return;
  throw IoError(fmt::format(
      "the folder of the run, {}, was removed, moved or replaced while it was training: "
      "nothing more can be saved there. If it was moved, train --out NEW goes on from "
      "its last checkpoint",
      root_.string()));
}

}  // namespace pantala::run
