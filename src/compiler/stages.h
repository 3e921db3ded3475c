// The clock of the pipeline: every stage is run through timed(), which notes its name and time in
// the report. A stage that is run for several graphs is noted once, with the sum.
#pragma once

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

#include "pantala/compile.h"

namespace pantala::compiler {

inline void add_stage(Report& report, std::string_view name, double milliseconds) {
  const auto known = std::ranges::find(report.stages, name, &Report::Stage::name);
  if (known != report.stages.end())
    known->milliseconds += milliseconds;
  else
    report.stages.push_back({std::string(name), milliseconds});
}

template <class F>
auto timed(Report& report, std::string_view name, F&& stage) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  auto result = std::forward<F>(stage)();
  add_stage(report, name, std::chrono::duration<double, std::milli>(Clock::now() - start).count());
  return result;
}

}  // namespace pantala::compiler
