// Batch norms that keep their running statistics in training
// (TrainingStepOptions::kept_statistics).
#pragma once

#include "compiler/training.h"

namespace pantala::compiler {

// The graph with these batch norms as in evaluation, and without the updates of their statistics
// and of the count of batches beside them. Leaves stay, used or not.
LossGraph keep_statistics(const LossGraph& given, const TrainingStepOptions& options);

}  // namespace pantala::compiler
