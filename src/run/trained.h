// The model of a run folder, ready to evaluate and predict.
#pragma once

#include <filesystem>
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

  // Whether the averages of the weights, if the run has some, have values: not before the first
  // update.
  bool has_averages() const { return trainer.state().global_steps > 0; }
};

struct OpenOptions {
  std::string checkpoint = "last";        // the newest whole one; or "best", or the name of one
  int threads = 0;                        // that compute; 0: as the run
  std::filesystem::path plan_cache = {};  // a folder for compiled plans; "": they are not kept
};
// IoError if there is no checkpoint, TypeError listing what there is if it is not among them.
Trained open_trained(const RunFolder& folder, const OpenOptions& options);

}  // namespace pantala::run
