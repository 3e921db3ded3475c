// A sweep: one run for every combination of the values of some keys, in sub-folders of one folder
// that sweep.json lists. The runs are like any others; what was interrupted goes on.
#pragma once

#include <exception>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "pantala/run.h"
#include "run/comparison.h"
#include "run/core/config.h"

namespace pantala::run {

// A key and the values that it takes in turn.
struct GridAxis {
  std::string key;
  std::vector<ConfigValue> values;
};
// "optimizer.lr=1e-4,1e-3": commas outside of brackets and quotes part the values. TypeError for
// what is no such text, and for a value that is there twice.
GridAxis parse_axis(std::string_view text);

struct GridRun {
  std::string name;                // of its folder: "lr=0.001,batch_size=16"
  std::vector<Assignment> values;  // one of each axis
  RunConfig config;
};
struct Grid {
  std::filesystem::path folder;
  std::vector<GridRun> runs;  // the last axis changes fastest
};
// All configs are made, so that a mistake in one is known before anything is trained. The folder is
// output.folder, or runs/MODEL-DATA-sweep.
Grid make_grid(std::vector<Assignment> assignments, const std::vector<GridAxis>& axes);

struct GridOptions {
  // `resume` is refused: a sweep goes on by itself; so are `profile` and `trace`, which are of one
  // run.
  RunOptions run = {};
  // Told before each run, with its number from 0.
  std::function<void(std::size_t number, const GridRun& run)> begins = {};
  // Whether to stop: between two runs and, unless `run` has its own, while one of them compiles.
  std::function<bool()> stop = {};
};
// A run that ended with an error.
struct GridFailure {
  std::size_t number = 0;
  std::exception_ptr error;
};
struct GridOutcome {
  bool interrupted = false;
  std::size_t number = 0;  // of the run that was interrupted
  std::int64_t steps = 0;  // of that
  std::size_t diverged = 0;
  std::vector<GridFailure> failed = {};  // in their order
};
// One run after the other; what is finished, or has diverged, is not trained again, and a run that
// fails leaves the others their turn. TypeError for a folder with anything else in it.
GridOutcome run_grid(const Grid& grid, const GridOptions& options);

// The runs side by side, also those that failed before they had a folder.
Comparison compare_grid(const Grid& grid, const GridOutcome& outcome);

// Draws all runs that have numbers over each other into FOLDER/plots. Returns the files.
std::vector<std::filesystem::path> draw_grid(const std::filesystem::path& folder);

// --- folders of sweeps
bool is_grid_folder(const std::filesystem::path& folder);
// Every folder of a sweep replaced by those of its runs that are there, in their order.
std::vector<std::string> with_grid_runs(const std::vector<std::string>& folders);
// The same without the runs of sweeps that have logged nothing yet.
std::vector<std::string> with_logged_runs(const std::vector<std::string>& folders);

}  // namespace pantala::run
