// From a config to a trainer: what is compiled, with which options, and for how many steps.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "pantala/trainer.h"
#include "run/core/config.h"
#include "run/models/model.h"

namespace pantala::run {

// How long a run is, in updates of the weights.
struct RunLength {
  std::int64_t batches = 0;  // an epoch
  std::int64_t steps_per_epoch = 0;
  std::int64_t total_steps = 0;
};
// TypeError if an epoch has no batch.
RunLength run_length(const RunConfig& config, const data::Loader& training);

// All that the step is compiled with but the optimizer, which is the trainer's.
CompileOptions compile_options(const RunConfig& config);
// What the run's steps, or its evaluations, are compiled with.
CompileOptions compile_options(const RunConfig& config, Phase phase);
// `target` is that of CompileOptions. Plans are kept in the folder `plan_cache`, unless it is "".
// `cancelled` is that of CompileOptions.
Trainer make_trainer(const RunConfig& config, const ModelShape& shape, std::int64_t total_steps,
                     const std::filesystem::path& plan_cache, std::function<bool()> cancelled = {},
                     std::shared_ptr<distributed::Communicator> ranks = {},
                     const std::string& target = {});

// How many threads compute if the config says so.
int compute_threads(const RunConfig& config);
// "device cpu: Intel(R) Xeon(R), 2 threads"
std::string device_line(const RunConfig& config);

}  // namespace pantala::run
