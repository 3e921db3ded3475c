#include "tools/train/run_folder.h"

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

namespace pantala::tools {

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
    if (entry.path().filename() != kLockFile) return Content::foreign;
  return Content::nothing;
}

RunConfig RunFolder::config() const { return make_config(read_toml_file(config_file())); }

void RunFolder::write_config(const RunConfig& config) const {
  io::write_file(config_file(), std::string(kMark) + write_toml(config));
}

bool RunFolder::has_checkpoint() const {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(checkpoints(), error))
    if (entry.path().filename().string().starts_with("step-")) return true;
  return false;
}

void RunFolder::clear() const {
  // The config goes last: as long as it is there, the folder is known to be a run's.
  std::vector<fs::path> entries;
  for (const fs::directory_entry& entry : fs::directory_iterator(root_))
    if (is_ours(entry.path().filename().string()) && entry.path() != config_file())
      entries.push_back(entry.path());
  entries.push_back(config_file());
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

}  // namespace pantala::tools
