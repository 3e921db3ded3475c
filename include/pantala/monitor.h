// What a run shows and leaves behind, for programs that train with a Trainer: a progress line,
// metrics.jsonl, metrics.csv, TensorBoard events and plots, all from one callback.
//
//   auto monitor = std::make_shared<monitor::RunMonitor>(monitor::RunMonitorOptions{
//       .progress = monitor::progress_on_stderr(), .folder = "runs/mine", .plots = true});
//   trainer.add_callback(monitor);
//
// Every part can be left out: no folder, no files; ProgressMode::none, no line. Runs that can be
// interrupted and continued keep position() in their checkpoints; run::fit_in_folder()
// (pantala/run.h) does that, and the rest of a run folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pantala/trainer.h"

namespace pantala::monitor {

// --- the progress line
enum class ProgressMode : std::uint8_t {
  automatic,  // live on a terminal, plain elsewhere
  plain,
  json,
  none,
};
// "auto", "plain", "json", "none"; TypeError with the list for other names.
ProgressMode parse_progress_mode(std::string_view name);

struct ProgressOptions {
  ProgressMode mode = ProgressMode::none;
  bool terminal = false;  // what is written to understands control characters
  bool colour = false;
  std::function<int()> width = {};                   // columns of the terminal; below 1: not known
  std::function<void(std::string_view)> write = {};  // must not throw; what it cannot write is lost
  std::function<double()> clock = {};                // seconds that never go back
};
// For stderr as it is. The values of the environment variables TERM and NO_COLOR are the program's
// to read; null: not set, and without TERM there is no live line.
ProgressOptions progress_on_stderr(ProgressMode mode = ProgressMode::automatic,
                                   const char* term = nullptr, const char* no_color = nullptr);

// --- the files
double seconds_since_1970();

struct RunLogOptions {
  // Steps: the first one and every so many; 0: none. Not set: every one at first, then rarer and
  // rarer as the run goes on, and every 100th from the 5,000th on.
  std::optional<std::int64_t> log_interval = {};
  bool tensorboard = true;
  // The validation's metrics that have a column; others are in the other files alone.
  std::vector<std::string> metrics = {"accuracy", "top5", "precision", "recall",
                                      "f1",       "mae",  "rmse",      "r2"};
  std::function<double()> wall_clock = seconds_since_1970;
};

// --- both, joined to a trainer

// They see train(), train_epoch() and fit(); steps that are taken by hand, outside of them, are not
// seen.
struct RunMonitorOptions {
  ProgressOptions progress = {};
  std::filesystem::path folder = {};  // for the log, made if it is missing; "": no files
  RunLogOptions log = {};
  bool plots = false;          // draw folder/plots anew after every epoch
  std::int64_t max_steps = 0;  // as FitOptions; for the time that is left
  std::string resumed = {};    // position() of the checkpoint that the run continues from; "": none
};

class RunMonitor : public MetricCallback {
 public:
  // ParseError if `resumed` is not what position() gave. Without `resumed` the log begins anew:
  // what another one has left in the folder is removed.
  explicit RunMonitor(RunMonitorOptions options);
  ~RunMonitor() override;

  void on_start(Trainer& trainer) override;
  void on_step(const StepMetrics& metrics) override;
  bool looks_at(std::int64_t global_step) override;
  bool looks_at_gradients() const override { return false; }
  void on_epoch(const EpochStats& stats) override;
  void on_activity(const Activity& activity) override;

  // What a checkpoint is to keep for this (CheckpointOptions::extra). The log is on the disk then.
  std::string position();
  // A line of the program's own while the run goes on.
  void message(std::string_view text);
  // Removes the live line: before results are printed.
  void finish();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Draws what the folder's log has (the loss, and accuracy or r2 if there is one) into
// folder/plots/METRIC.svg. Returns the files. IoError if there is no log.
std::vector<std::filesystem::path> draw_plots(const std::filesystem::path& folder);

}  // namespace pantala::monitor
