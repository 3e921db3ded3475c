// How a run goes, for whoever watches it. On a terminal: one live line that is redrawn in place,
// and a line per epoch that stays. Elsewhere: plain lines at intervals, without any control
// character. Or JSON, an object a line.
//
// Everything goes to stderr, or where the options (pantala/monitor.h) say; stdout is for
// results. While a ProgressLine stands, log lines (base/log.h) are written above the live line, or
// as JSON.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "monitor/line_parts.h"
#include "monitor/records.h"
#include "pantala/monitor.h"

namespace pantala::monitor {

// Where in the run a step is.
struct RunPlace {
  std::int64_t epochs = 0;                   // in all; 0: not known
  std::int64_t batch = 0;                    // of this epoch, finished
  std::optional<std::int64_t> batches = {};  // of an epoch
  std::int64_t max_steps = 0;                // in all; 0: no limit
};

class ProgressLine {
 public:
  explicit ProgressLine(ProgressOptions options);
  ~ProgressLine();  // as finish()
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Every step's loss, for the average that is shown. Cheap.
  void observe(double loss);
  // Whether step() would show something now. Cheap.
  bool is_due() const;
  // Shows the step, if that is due.
  void step(const StepRecord& record, const RunPlace& place);
  void epoch(const EpochRecord& record, std::int64_t epochs);
  // What the run is about while no steps come: on a terminal at once, elsewhere if a line is due.
  void activity(const Activity& activity);
  // A line of the program's own, which stays.
  void message(std::string_view text);
  // Removes the live line. The next step begins another.
  void finish();

 private:
  enum class Form : std::uint8_t { live, plain, json, none };
  void show_line(std::string_view text);  // that stays
  void draw_live(std::string text);
  void erase_live();
  double interval() const;
  std::string in_terminal(std::vector<LinePart> parts) const;  // as wide as that is
  std::optional<double> seconds_left(const StepRecord& record, const RunPlace& place);

  ProgressOptions options_;
  Form form_;
  std::mutex mutex_;             // taken inside of the log's own lock, never around a log line
  std::string live_;             // what stands on the terminal's last line
  std::string step_line_;        // what stood there last of a step
  std::vector<LinePart> place_;  // the beginning of the last step's line
  double loss_ = 0;              // the average
  std::int64_t losses_ = 0;      // that are in it
  std::optional<double> begin_, last_;  // times of the first and of the last step that was shown
  struct Origin {
    double seconds = 0;
    std::int64_t batches = 0, steps = 0;
  };
  std::optional<Origin> origin_;  // the first step that was shown: time left is judged from it
  Activity::Kind activity_ = Activity::Kind::training;  // at present
  std::optional<double> compiling_since_;
  double compiling_seconds_ = 0;  // since the origin: nothing of what is left
  Metrics metrics_;               // of the last validation
  std::unique_ptr<logging::Detour> detour_;
};

// "0:07", "12:34", "1:02:03", "3 d 04:05".
std::string duration_text(double seconds);
// "950 KiB", "1.2 GiB".
std::string memory_text(std::int64_t bytes);
// "1,234,567"; with decimals below 100.
std::string rate_text(double per_second);

}  // namespace pantala::monitor
