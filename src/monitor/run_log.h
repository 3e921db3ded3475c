// The numbers of a run as files in its folder, for people, programs and TensorBoard:
//  - metrics.jsonl: an object per line: kind ("step" or "epoch"), time, and those fields of
//    records.h that there are.
//  - metrics.csv: the same as a table; empty where there is no number.
//  - events.out.tfevents.*: the same for TensorBoard: train/loss, validation/accuracy, ...
//
// Every record is written at once and whole, so that the files can be watched.
//
// A checkpoint keeps positions(); a log that goes on from there cuts the files back to what they
// were then, so that in the end they hold every step once, however often the run was interrupted.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/append_file.h"
#include "io/event_file.h"
#include "monitor/records.h"
#include "pantala/monitor.h"

namespace pantala::monitor {

inline constexpr std::string_view kMetricsJsonl = "metrics.jsonl", kMetricsCsv = "metrics.csv";

// How far apart the rows of steps are by themselves: by the step alone, whatever the length of the
// run, so that one that is continued or prolonged has the rows of a longer one. Short runs have a
// row for each step, long ones a few hundred and one for every 100 steps.
std::int64_t interval_at(std::int64_t global_step);

class RunLog {
 public:
  // Begins anew: what a log has left in the folder is removed; the folder is made if it is missing.
  explicit RunLog(std::filesystem::path folder, RunLogOptions options = {});
  // Goes on from positions(). Files that are missing or too short get a warning and what can still
  // be had. ParseError if the positions are none.
  RunLog(std::filesystem::path folder, std::string_view positions, RunLogOptions options = {});

  // IoError if a file cannot be written.
  void step(const StepRecord& record);  // does nothing if it is not due
  void epoch(const EpochRecord& record);
  bool step_is_due(std::int64_t global_step) const;

  // How long the files are, as JSON: {"metrics.csv":123,...}. They are on the disk then.
  std::string positions();

 private:
  struct Positions;
  RunLog(std::filesystem::path folder, const Positions& positions, RunLogOptions options);
  void write(std::string_view kind, std::string_view tag_group, std::int64_t global_step,
             const std::vector<Field>& fields);

  std::filesystem::path folder_;
  RunLogOptions options_;
  std::vector<std::string> columns_;
  std::optional<io::AppendFile> jsonl_, csv_;
  std::optional<io::EventFile> events_;
};

}  // namespace pantala::monitor
