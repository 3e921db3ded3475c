// What a run computes, as the compiler gets it: for those who look inside.
#pragma once

#include <cstdint>
#include <optional>

#include "pantala/compile.h"
#include "pantala/trainer.h"
#include "pantala/weights.h"
#include "run/run_folder.h"

namespace pantala::run {

struct RunGraph {
  Graph graph;
  Tensor loss;  // empty: an evaluation
  CompileOptions options;
  Weights weights = {};  // that the run has left, if it has left any
};

// Of batches as large as the run's, or of so many items. IoError and ParseError for a folder whose
// files are missing or damaged.
RunGraph graph_of_run(const RunFolder& folder, Phase phase, std::optional<std::int64_t> batch = {});

}  // namespace pantala::run
