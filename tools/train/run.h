// A whole training run: opens the data, makes or continues the run folder, trains, and leaves the
// result there.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pantala/trainer.h"
#include "tools/train/config.h"
#include "tools/train/result.h"

namespace pantala::tools {

struct RunOptions {
  bool resume = false;   // there must be a checkpoint
  bool restart = false;  // what an earlier run left in the folder is removed
  std::function<Request(const Trainer&)> poll = {};  // asked after every batch
};

struct RunOutcome {
  enum class End : std::uint8_t {
    finished,
    was_finished,  // before: nothing was done
    interrupted,   // and saved
  };
  End end = End::finished;
  OrderedJson result;         // unless it was interrupted
  std::string result_source;  // what messages call it
  std::int64_t steps = 0;     // updates so far
};

// TypeError listing the keys if the folder holds a run with another config; DivergenceError with
// the diagnosis after RUN/diverged was written.
RunOutcome run_training(const RunConfig& config, const RunOptions& options);

}  // namespace pantala::tools
