// Several runs, for C++ programs: one for every combination of the values of some keys, and runs
// side by side. `pantala train --sweep` and `pantala compare` do the same.
//
//   run::SweepOutcome sweep = run::run_sweep({.config = "run.toml", .values = {"epochs=3"},
//                                             .keys = {"optimizer.lr=1e-4,1e-3,1e-2"}});
#pragma once

#include <cstdint>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include "pantala/run.h"

namespace pantala::run {

struct SweepRequest {
  std::filesystem::path config = {};     // as read_config() takes it
  std::vector<std::string> values = {};  // on top of it
  // A key each, with the values that it takes in turn: "optimizer.lr=1e-4,1e-3".
  std::vector<std::string> keys;
  RunOptions options = {};  // of every run; `resume` is refused
};
struct FailedRun {
  std::string folder;
  std::exception_ptr error;
};
struct SweepOutcome {
  bool interrupted = false;
  std::size_t diverged = 0;          // runs
  std::vector<FailedRun> failed;     // those that ended with another error, in their order
  std::vector<std::string> folders;  // of all runs, in their order
  std::string comparison = {};       // as compare() has it; "" if it was interrupted
};
// One run after the other, in sub-folders of output.folder; what is finished is not trained again,
// and a run that fails leaves the others their turn. TypeError for a mistake in any of the configs,
// before anything is trained.
SweepOutcome run_sweep(const SweepRequest& request);

// A JSON object with `metric` (what the best run was chosen by), `keys` (that differ), `runs` (with
// their values of these keys and their metrics) and `best`, a folder or null. A sweep's folder
// stands for its runs. `metric` may be "": the runs' checkpoint.metric if they agree, else the
// loss.
std::string compare(const std::vector<std::string>& folders, const std::string& metric = "");

}  // namespace pantala::run
