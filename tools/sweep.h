// train --sweep: one run after the other, and a table of them.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/config_flags.h"

namespace pantala::tools {

struct SweepCommand {
  std::vector<std::string> keys;  // "optimizer.lr=1e-4,1e-3"
  bool resume = false, restart = false, dry_run = false, json = false;
  // A message of the command: to whom it belongs, and what it says.
  std::function<void(const run::RunConfig&, const std::string& who, const std::string& text)> tell;
  std::string_view way_on;  // how to go on after an interruption
};
// Returns the exit code.
int sweep(const ConfigFlags& flags, const SweepCommand& options);

}  // namespace pantala::tools
