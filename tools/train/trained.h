// The model of a run folder, ready to evaluate and predict.
#pragma once

#include <string>

#include "pantala/trainer.h"
#include "tools/train/config.h"
#include "tools/train/run_folder.h"
#include "tools/train/source.h"

namespace pantala::tools {

struct Trained {
  RunConfig config;
  DataProfile profile;
  Trainer trainer;
  std::string checkpoint;  // its name

  // Whether the averages of the weights, if the run has some, have values: not before the first
  // update.
  bool has_averages() const { return trainer.state().global_steps > 0; }
};

// `checkpoint` is the name of one, "last" (the newest whole one) or "best". `threads` 0: as the
// run. IoError if there is none, TypeError listing what there is if it is not among them.
Trained open_trained(const RunFolder& folder, const std::string& checkpoint, int threads);

}  // namespace pantala::tools
