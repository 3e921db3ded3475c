// Where the time of a plan's runs goes: spans for a trace, and a table of kernels.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/trace.h"
#include "device/device.h"
#include "pantala/compiled_plan.h"

namespace pantala::device {

// All launches of one kernel in all runs that were added.
struct KernelTime {
  std::string kernel;
  std::int64_t launches = 0;     // in a run
  std::int64_t nanoseconds = 0;  // of the workers that took longest
  friend bool operator==(const KernelTime&, const KernelTime&) = default;
};

// The rows of a trace on which runs are drawn: one for whole runs, and one for each worker, added
// when it first occurs.
struct RunTracks {
  trace::Track runs;
  std::vector<trace::Track> workers = {};
};

class Profile {
 public:
  // `described` says more about the launches, if there are as many.
  explicit Profile(const plan::Plan& plan, std::span<const Report::Launch> described = {});

  // TypeError if the times are of another plan. Allocates nothing.
  void add(const RunTimes& times);
  std::int64_t runs() const { return runs_; }

  // What took longest comes first.
  std::vector<KernelTime> kernels() const;
  // As text: one line per kernel, with its share of the run and the microseconds per run.
  std::string table() const;

  // Adds a run to a trace: a span of category "step", and on the row of each worker a span of
  // category "kernel" for every launch that it had a part in, from the beginning of that part to
  // where the worker goes on with something else. The time in which it waits for the others is
  // within it, as a span "wait" of category "wait"; before the first launch and between launches in
  // which it has no part such a span stands alone.
  void record(const RunTimes& times, trace::Recorder& recorder, RunTracks& tracks) const;

 private:
  void check(const RunTimes& times) const;
  void record_worker(const RunTimes& times, std::size_t worker, trace::Recorder& recorder,
                     trace::Track track) const;

  struct Launch {
    std::string name;
    std::size_t kernel = 0;
    std::int64_t items = 0;
    std::string layers = {}, ops = {};
  };
  std::string plan_;
  std::vector<Launch> launches_;
  std::vector<KernelTime> kernels_;  // by unit
  std::int64_t runs_ = 0, nanoseconds_ = 0;
};

}  // namespace pantala::device
