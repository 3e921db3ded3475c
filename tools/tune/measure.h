// The times of launches, measured: of each the best of many runs, since a machine that does
// something else meanwhile only ever makes them longer.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "compiler/predictions.h"
#include "device/device.h"
#include "pantala/session.h"
#include "schedule/cost_table.h"
#include "tools/bench/workloads.h"
#include "tools/tune/probes.h"

namespace pantala::tools {

// Where launches are measured.
struct Machine {
  std::string device = "cpu", target = {};
  int threads = 1;
  // A device that takes times itself counts what a launch costs to its time.
  bool takes_times() const { return device::has_driver(device); }
};

// Launches of a graph that was run, ready to be held against any table.
struct Measured {
  std::string name;
  Machine machine;
  compiler::Predictions predictions;
  std::vector<double> launch_us;  // of the thread that takes longest
  // What a whole run takes beside its launches: in the median, since it can seem shorter, too.
  double overhead_us = 0;

  // The same as launch_us is measured: of threads of a CPU without what comes before and after a
  // kernel.
  std::vector<double> predicted_us(const schedule::CostTable& table) const;
};

// At least three runs and at most as many as fit into the seconds.
Measured measure(const Probe& probe, const Machine& machine, double seconds);
Measured measure(const Workload& workload, const Machine& machine, double seconds);

}  // namespace pantala::tools
