// A callback that shows and records a run of a trainer: ProgressLine and RunLog, joined to
// train(), train_epoch() and fit(). (Steps that are taken by hand, outside of them, are not seen.)
//
//   auto monitor = std::make_shared<RunMonitor>(RunMonitorOptions{...});
//   trainer.add_callback(monitor);
//   fit_options.checkpoints.extra = [monitor] { return monitor->position(); };
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "monitor/progress_line.h"
#include "monitor/run_log.h"
#include "pantala/trainer.h"

namespace pantala::monitor {

struct RunMonitorOptions {
  ProgressOptions progress;
  std::filesystem::path folder = {};  // for the log; "": no files
  RunLogOptions log = {};
  std::int64_t max_steps = 0;  // as FitOptions; for the time that is left
  std::string resumed = {};    // position() of the checkpoint that the run continues from; "": none
};

class RunMonitor : public MetricCallback {
 public:
  // ParseError if `resumed` is not what position() gave.
  explicit RunMonitor(RunMonitorOptions options);

  void on_start(Trainer& trainer) override;
  void on_step(const StepMetrics& metrics) override;
  void on_epoch(const EpochStats& stats) override;

  // What a checkpoint is to keep for this (CheckpointOptions::extra). The log is on the disk then.
  std::string position();
  // For the program's own messages while the run goes on; finish() before results are printed.
  ProgressLine& line() { return line_; }

 private:
  // How far training had come at some moment.
  struct Pace {
    std::int64_t items = 0;
    double seconds = 0, wait_seconds = 0;
  };
  static Pace pace_of(const Progress& progress);
  void measure(const Progress& progress);
  std::optional<Evaluation> evaluation_of(const EpochStats& stats) const;

  std::int64_t max_steps_;
  ProgressLine line_;
  std::optional<RunLog> log_;
  Trainer* trainer_ = nullptr;
  std::optional<Evaluation> seen_;  // the last evaluation that was told, or was there before
  Pace epoch_begin_;
  Pace epoch_before_;  // what the epoch took before the run was interrupted
  Pace window_begin_;
  std::optional<double> items_per_second_, wait_share_;  // of the last window
  std::optional<std::int64_t> memory_bytes_;
};

}  // namespace pantala::monitor
