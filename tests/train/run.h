// Runs of the real command that are disturbed, and what has to be the same in the end as in a run
// that was left alone.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/training.h"
#include "support/event_decoder.h"

namespace pantala::tests {

// All of a finished run but times, rates and names of folders.
struct RunRecord {
  std::map<std::string, std::string> files;  // the model, and the newest checkpoint's tensors
  std::vector<std::string> checkpoints;      // names
  nlohmann::json state;                      // of the newest checkpoint
  nlohmann::json result;
  std::vector<std::string> csv, jsonl;  // lines
  std::vector<Event> events;
};
RunRecord record_of(const std::filesystem::path& run);
void expect_same(const RunRecord& actual, const RunRecord& expected, const std::string& about);

// The checkpoints of a run by name, and what else is in their folder.
std::vector<std::string> checkpoints_of(const std::filesystem::path& run);
std::vector<std::string> leftovers_of(const std::filesystem::path& run);

// Has a little of everything that a checkpoint must keep: moments, a schedule with warm-up,
// averages of the weights, windows of two micro-batches with a short one at the end, clipping,
// shuffling, and early stopping, which ends the run and brings earlier weights back.
class RichRun : public TrainingTest {
 protected:
  RichRun();

  std::vector<std::string> rich(const std::string& out, std::vector<std::string> more = {}) const;
  // The same command until the end, which must be a good one.
  Outcome finish(const std::string& out) const;
  RunRecord record(const std::string& out) const { return record_of(file(out)); }
  // A run in one piece; its folder is "whole".
  RunRecord whole() const;
  void remove(const std::string& name) const { std::filesystem::remove_all(file(name)); }

  // A signal may come too late, when the run has ended. Such a run is no case: it is removed and
  // made again. `disturb` makes it and says whether it was disturbed.
  void try_until(const std::string& out, const std::function<bool()>& disturb) const;
  // A run that was killed after its n-th checkpoint.
  void kill_after_checkpoints(const std::string& out, std::size_t checkpoints) const;
};

// The command, once it has made n checkpoints, or has ended.
std::unique_ptr<Running> run_until(const std::vector<std::string>& words,
                                   const std::filesystem::path& run, std::size_t checkpoints);
// Does not spin: on a busy machine a process that sleeps a little is soon awake again.
void pause_briefly();

}  // namespace pantala::tests
