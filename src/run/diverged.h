// What is left of a run whose numbers stopped being finite: the batch, the state before it, and a
// diagnosis that names the op where it began.
#pragma once

#include <string>

#include "pantala/trainer.h"
#include "run/core/config.h"
#include "run/models/model.h"
#include "run/run_folder.h"

namespace pantala::run {

// Writes RUN/diverged: batch-data.npy, batch-labels.npy, state/ (a checkpoint) and diagnosis.txt.
// Returns `message`, which says where the batch was in the run, with the text of the diagnosis.
std::string save_divergence(const RunFolder& folder, const RunConfig& config,
                            const ModelShape& shape, const Trainer& trainer,
                            const std::string& message);

}  // namespace pantala::run
