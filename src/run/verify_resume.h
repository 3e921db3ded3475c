// Runs a config twice, once in one piece and once with interruptions, and compares every bit that
// is left: parameters, optimizer state, counters, history.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "run/core/config.h"

namespace pantala::run {

struct VerifyOptions {
  std::int64_t steps = 30;                // updates of the weights that are compared, at most
  std::int64_t interruptions = 3;         // places where a run is interrupted
  std::filesystem::path plan_cache = {};  // a folder for compiled plans; "": they are not kept
  std::function<void(const std::string&)> tell = [](const std::string&) {};
};

struct VerifyResult {
  std::int64_t steps = 0;                // that were compared
  std::vector<std::int64_t> places;      // batches after which a run was interrupted
  std::vector<std::string> differences;  // empty: all bits are the same
};

// In temporary folders, which are removed.
VerifyResult verify_resume(RunConfig config, const VerifyOptions& options);

}  // namespace pantala::run
