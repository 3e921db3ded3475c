// Where the time of a plan's runs goes: spans for a trace, and a table of kernels.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/trace.h"
#include "device/device.h"

namespace pantala::device {

// All launches of one kernel in all runs that were added.
struct KernelTime {
  std::string kernel;
  std::int64_t launches = 0;     // in a run
  std::int64_t nanoseconds = 0;  // of the workers that took longest
  friend bool operator==(const KernelTime&, const KernelTime&) = default;
};

class Profile {
 public:
  explicit Profile(const plan::Plan& plan);

  // TypeError if the times are of another plan. Allocates nothing.
  void add(const RunTimes& times);
  std::int64_t runs() const { return runs_; }

  // What took longest comes first.
  std::vector<KernelTime> kernels() const;
  // As text: one line per kernel, with its share of the run and the microseconds per run.
  std::string table() const;

  // Adds a run to a trace: a span of category "step" and within it one per launch, as worker 0 saw
  // them, of category "kernel".
  void record(const RunTimes& times, trace::Recorder& recorder, trace::Track track) const;

 private:
  void check(const RunTimes& times) const;

  struct Launch {
    std::string name;
    std::size_t kernel = 0;
    std::int64_t items = 0;
  };
  std::string plan_;
  std::vector<Launch> launches_;
  std::vector<KernelTime> kernels_;  // by unit
  std::int64_t runs_ = 0, nanoseconds_ = 0;
};

}  // namespace pantala::device
