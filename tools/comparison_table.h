// Runs side by side, for people and for spreadsheets.
#pragma once

#include <string>

#include "run/comparison.h"

namespace pantala::tools {

// A row per run, the best one marked, with the keys that differ and the more telling metrics.
std::string comparison_text(const run::Comparison& comparison);
// All metrics; the column `best` has a 1 for that run.
std::string comparison_csv(const run::Comparison& comparison);

}  // namespace pantala::tools
