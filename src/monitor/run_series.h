// The numbers of a run, read back from its folder (run_log.h). Files may be unfinished, because
// their run still goes on or was killed, and may be of any size: memory is bounded, long runs are
// thinned.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "monitor/records.h"

namespace pantala::monitor {

struct RunSeries {
  std::string name;  // for legends
  std::vector<StepRecord> steps;
  std::vector<EpochRecord> epochs;
};

// More steps (or epochs) than this are thinned: every second one, every fourth one, ...
inline constexpr std::size_t kMostRecords = std::size_t{1} << 17;

// From metrics.jsonl, or from metrics.csv where that is missing; the run has the folder's name.
// IoError if the folder or both files are missing or nothing is in them, ParseError with file and
// line for what is no record. A last line without an end is still being written and is left out.
RunSeries read_run(const std::filesystem::path& folder);
RunSeries read_metrics_jsonl(const std::filesystem::path& file);
RunSeries read_metrics_csv(const std::filesystem::path& file);

}  // namespace pantala::monitor
