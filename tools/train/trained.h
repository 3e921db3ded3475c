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
};

// `checkpoint` is the name of one, "last" (the newest whole one) or "best". `threads` 0: as the
// run. IoError listing what there is if it is not there.
Trained open_trained(const RunFolder& folder, const std::string& checkpoint, int threads);

}  // namespace pantala::tools
