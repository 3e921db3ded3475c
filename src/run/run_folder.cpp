#include "run/run_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "base/text.h"
#include "io/file.h"
#include "pantala/error.h"

namespace pantala::run {

namespace {

namespace fs = std::filesystem;

// A config.toml that begins so was written by write_config().
constexpr std::string_view kMark = "# The config of this run, as pantala train has written it.\n";
constexpr std::string_view kLockFile = "run.lock";

bool is_ours(const std::string& name) {
  for (const char* known :
       {"config.toml", "data.json", "environment.json", "metrics.jsonl", "metrics.csv",
        "result.json", "model.safetensors", "checkpoints", "plots", "diverged"})
    if (name == known) return true;
  return name.starts_with("events.out.tfevents.");
}

// What a crash has left of a file of ours that was being written: ".result.json.123-4.tmp".
bool is_leftover(const std::string& name) {
  constexpr std::string_view kEnd = ".tmp";
  if (!name.starts_with('.') || !name.ends_with(kEnd)) return false;
  const std::string of = name.substr(1, name.size() - 1 - kEnd.size());
  return is_ours(of.substr(0, of.rfind('.')));
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
  remove_entries([this](const std::string& name) {
    return is_ours(name) && name != config_file().filename();
  });
}

void RunFolder::remove_leftovers() const { remove_entries(is_leftover); }

void RunFolder::remove_entries(const std::function<bool(const std::string&)>& which) const {
  std::vector<fs::path> entries;
  for (const fs::directory_entry& entry : fs::directory_iterator(root_))
    if (which(entry.path().filename().string())) entries.push_back(entry.path());
  for (const fs::path& entry : entries) {
    std::error_code error;
    fs::remove_all(entry, error);
    if (error)
      throw IoError(fmt::format("{} cannot be removed: {}", entry.string(), error.message()));
  }
}

RunFolder open_run_folder(const std::string& path) {
  RunFolder folder(path);
  const RunFolder::Content content = folder.content();
  if (content == RunFolder::Content::run) return folder;
  throw IoError(fmt::format(
      "{} is {}; a run folder is what pantala train --out makes", path,
      content == RunFolder::Content::nothing ? "empty or not there" : "not the folder of a run"));
}

FolderLock::FolderLock(const RunFolder& folder) {
  std::error_code error;
  fs::create_directories(folder.root(), error);
  if (error)
    throw IoError(fmt::format("the run folder {} cannot be made: {}", folder.root().string(),
                              error.message()));
  const fs::path path = folder.root() / kLockFile;
  descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor_ < 0) throw IoError(fmt::format("{}: {}", path.string(), std::strerror(errno)));
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) == 0) return;
  ::close(descriptor_);
  throw IoError(
      fmt::format("another process is training in {}; wait for it, or choose another --out",
                  folder.root().string()));
}

FolderLock::~FolderLock() { ::close(descriptor_); }

}  // namespace pantala::run
