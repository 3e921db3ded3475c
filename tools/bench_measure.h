// How long a step of a workload takes: what `pantala bench` measures.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "pantala/session.h"
#include "tools/bench/workloads.h"
#include "tools/compile_flags.h"

namespace pantala::tools {

struct BenchOptions {
  std::vector<std::string> workloads;
  bool all = false, infer = false, json = false, kernels = false, unfused = false;
  bool data = false;       // a step begins with its inputs and ends with its loss
  bool plan_only = false;  // no code, no step
  double seconds = 2;
  int threads = 0;
  std::string cache, trace, target, report;
  int greedy_order = 0;
  std::string guard = "watched";  // as `train` has it
  CompileChoice compile;
};

struct Measured {
  // From the start of the compilation: to its end, to where the first step can start (with memory,
  // first values and inputs), and to that step's end.
  double compile_ms = 0, ready_ms = 0, first_step_ms = 0;
  std::int64_t idle_bytes = 0;   // that were resident before
  std::vector<double> steps;     // in ms, sorted
  std::vector<double> launches;  // of each launch the best time, in ms; of --kernels
  // Training: the loss; inference: the root mean square of the output.
  double first = 0, last = 0;
  double median() const { return steps[steps.size() / 2]; }
};

// By its name; TypeError with the nearest one.
NonFiniteGuard guard_named(const std::string& name);

CompileOptions compile_options(const Workload& w, const BenchOptions& options);

struct Benched {
  Session session;
  Measured measured;
};
// Compiles the workload and takes steps for as long as the options say.
Benched bench(const Workload& w, const BenchOptions& options);
// How the figures of a workload begin, and what its plan says, whether it ran or not.
nlohmann::ordered_json line_of(const std::string& name, const BenchOptions& options);
void add_figures(const Report& report, nlohmann::ordered_json& line);
// The figures of one workload.
nlohmann::ordered_json figures(const std::string& name, const BenchOptions& options,
                               const Benched& benched);

}  // namespace pantala::tools
