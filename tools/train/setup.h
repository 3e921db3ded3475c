// From a config to a trainer: what is compiled, with which options, and for how many steps.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "pantala/trainer.h"
#include "tools/train/config.h"
#include "tools/train/model.h"

namespace pantala::tools {

// How long a run is, in updates of the weights.
struct RunLength {
  std::int64_t batches = 0;  // an epoch
  std::int64_t steps_per_epoch = 0;
  std::int64_t total_steps = 0;
};
// TypeError if an epoch has no batch.
RunLength run_length(const RunConfig& config, const data::Loader& training);

// All that the step is compiled with, optimizer included.
CompileOptions compile_options(const RunConfig& config);
Trainer make_trainer(const RunConfig& config, const ModelShape& shape, std::int64_t total_steps);

// pantala in $XDG_CACHE_HOME or ~/.cache, made for the user alone; "" (with a warning) if there is
// no such place.
std::filesystem::path cache_folder();

// The command line of this process; empty where the system does not tell.
std::vector<std::string> command_words();
// How many threads compute if the config says so.
int compute_threads(const RunConfig& config);
// "device cpu: Intel(R) Xeon(R), 2 threads; no other device is built in"
std::string device_line(const RunConfig& config);

}  // namespace pantala::tools
