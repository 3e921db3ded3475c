// What a run shows and leaves behind while it goes: progress on stderr, and the files of its
// numbers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "monitor/progress_line.h"
#include "monitor/run_log.h"
#include "pantala/trainer.h"
#include "tools/train/config.h"

namespace pantala::tools {

class RunWatch : public MetricCallback {
 public:
  explicit RunWatch(const RunConfig& config);

  // A line for whoever watches.
  void message(const std::string& text) { progress_.message(text); }
  // Begins the files anew, or goes on from what `extra` of a checkpoint says.
  void open_log(const std::filesystem::path& folder, const std::optional<std::string>& extra);
  // For checkpoints: how long the files are, and the time that was spent so far.
  std::string extra();
  void finish() { progress_.finish(); }

  double seconds() const;      // of training, since the run began
  std::int64_t items() const;  // trained since then

  void on_start(Trainer& trainer) override;
  void on_step(const StepMetrics& metrics) override;
  void on_epoch(const EpochStats& stats) override;

 private:
  monitor::StepRecord record(const StepMetrics& metrics, const Progress& now) const;

  std::int64_t max_steps_;
  monitor::RunLogOptions log_options_;
  monitor::ProgressLine progress_;
  std::optional<monitor::RunLog> log_;
  Trainer* trainer_ = nullptr;
  double earlier_seconds_ = 0;  // before the run was interrupted
  std::int64_t earlier_items_ = 0;
  struct Mark {
    double seconds = 0, wait_seconds = 0;
    std::int64_t items = 0;
  };
  Mark last_record_, epoch_begin_;
};

}  // namespace pantala::tools
