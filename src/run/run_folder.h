// The folder of a run: where its files are, whether it is one, and who may write in it.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "run/core/config.h"

namespace pantala::run {

// The names of its runs, in the folder of a sweep.
inline constexpr const char* kSweepFile = "sweep.json";

class RunFolder {
 public:
  explicit RunFolder(std::filesystem::path root) : root_(std::move(root)) {}

  const std::filesystem::path& root() const { return root_; }
  std::filesystem::path config_file() const { return root_ / "config.toml"; }
  std::filesystem::path data_file() const { return root_ / "data.json"; }
  std::filesystem::path cost_table_file() const { return root_ / "cost-table.txt"; }
  std::filesystem::path result_file() const { return root_ / "result.json"; }
  std::filesystem::path model_file() const { return root_ / "model.safetensors"; }
  std::filesystem::path checkpoints() const { return root_ / "checkpoints"; }
  std::filesystem::path plots() const { return root_ / "plots"; }
  std::filesystem::path diverged() const { return root_ / "diverged"; }

  enum class Content : std::uint8_t { nothing, run, foreign };
  // IoError if it cannot be looked into.
  Content content() const;
  // Whether all that is there are files of runs, though there is no config of one.
  bool has_run_files_alone() const;
  // Of a run; ParseError and TypeError if somebody has changed the file.
  RunConfig config() const;
  void write_config(const RunConfig& config) const;
  bool has_checkpoint() const;
  // Removes what a run has left, and nothing else; the config stays.
  void clear() const;
  // Removes what a process that was killed has left half done, and brings back a checkpoint that it
  // was about to replace.
  void remove_leftovers() const;
  bool has_leftovers() const;

 private:
  std::vector<std::filesystem::path> leftovers() const;  // but those of checkpoints

  std::filesystem::path root_;
};

// The folder that a verb is told to read; IoError saying what it is if it is no run folder.
RunFolder open_run_folder(const std::string& path);

// Makes the folder and keeps other processes from training in it. IoError if one does.
class FolderLock {
 public:
  explicit FolderLock(const RunFolder& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  // IoError if the folder is not the one that was locked: somebody has removed or moved it.
  void check_folder() const;

 private:
  std::filesystem::path root_;
  int folder_ = -1, lock_ = -1;  // descriptors
};

}  // namespace pantala::run
