// What every run has in its folder while it trains, however it was set up: environment.json,
// cost-table.txt, the monitor's files, checkpoints with notes from which it goes on. Runs of a
// config (training.cpp) and of a trainer of one's own (folder_fit.cpp) are both recorded so.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "monitor/environment.h"
#include "pantala/monitor.h"
#include "pantala/trainer.h"
#include "run/run_folder.h"

namespace pantala::run {

struct RecordingOptions {
  bool writes = true;  // false: another rank of the run does
  monitor::ProgressOptions progress;
  monitor::RunLogOptions log = {};
  std::int64_t max_steps = 0;  // as FitOptions
  monitor::RunEnvironment environment;
};

class Recording {
 public:
  Recording(RunFolder folder, RecordingOptions options);

  // Loads the newest checkpoint of the folder that is whole; false if there is none.
  bool resume(Trainer& trainer);
  // Begins, or goes on after resume(): writes the environment and the cost table, opens the logs,
  // and tells. `about` is a line of its own, unless it is "".
  void start(Trainer& trainer, const std::string& about);
  // The options with the folder's checkpoints; good as long as this and the trainer live. What
  // `before_save` throws keeps a checkpoint from being written.
  FitOptions fit_options(FitOptions fit, const Trainer& trainer, std::function<void()> before_save);
  // Removes the live line.
  void finish();

  // Training alone, the time before interruptions included.
  double seconds(const Trainer& trainer) const;
  std::int64_t items(const Trainer& trainer) const;
  // Of the seconds, those that this rank has waited for gradients of others; none on one rank.
  std::optional<double> exposed_seconds(const Trainer& trainer) const;
  // The files; none, with a warning, if they cannot be drawn: the model is trained all the same.
  std::vector<std::string> draw_plots() const;

 private:
  std::string notes(const Trainer& trainer);
  void read_notes(const std::string& extra);

  RunFolder folder_;
  RecordingOptions options_;
  std::shared_ptr<monitor::RunMonitor> monitor_;
  bool continued_ = false;
  std::string position_;        // of the monitor, in the checkpoint
  double earlier_seconds_ = 0;  // of training, before the run was interrupted
  std::int64_t earlier_items_ = 0;
  double earlier_exposed_ = 0;
};

}  // namespace pantala::run
