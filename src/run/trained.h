// The model of a run folder, ready to evaluate and predict.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "pantala/trainer.h"
#include "run/core/config.h"
#include "run/core/data_facts.h"
#include "run/run_folder.h"

namespace pantala::run {

struct Trained {
  RunConfig config;
  DataFacts facts;
  Trainer trainer;
  std::string checkpoint;  // its name
  // The weights are those of this epoch (from 0), which early stopping has kept in the checkpoint;
  // none: the checkpoint's own.
  std::optional<std::int64_t> best_epoch = {};

  // "step-000000123", "step-000000123 (the weights of epoch 3)"
  std::string weights_text() const;

  // Whether the averages of the weights, if the run has some, have values: not before the first
  // update.
  bool has_averages() const { return trainer.state().global_steps > 0; }
};

// Which weights of a run are meant: kReported are those that the run has reported numbers of at its
// end, and until then the newest ones.
inline constexpr const char *kReported = "reported", *kLast = "last", *kBest = "best";
// What they mean, for people.
std::string checkpoint_help();

struct OpenOptions {
  std::string checkpoint = kReported;     // or kLast, kBest, or the name of a checkpoint
  int threads = 0;                        // that compute; 0: as the run
  std::filesystem::path plan_cache = {};  // a folder for compiled plans; "": they are not kept
  std::string device = {};                // that computes; "": as the run
};
// IoError if there is no checkpoint, TypeError listing what there is if it is not among them.
Trained open_trained(const RunFolder& folder, const OpenOptions& options);

}  // namespace pantala::run
