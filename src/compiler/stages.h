// The clock of the pipeline: every stage is run through a Stages, which notes its name and time in
// a report and as a span of the trace, if there is one. A stage that is run for several graphs is
// noted once in the report, with the sum. None begins once a stop is requested.
#pragma once

#include <chrono>
#include <stop_token>
#include <string_view>
#include <utility>

#include "base/trace.h"
#include "pantala/compile.h"
#include "plan/report.h"

namespace pantala::compiler {

// CompilationStopped if the plan is not wanted any more.
inline void check_goes_on(const std::stop_token& stop) {
  if (stop.stop_requested()) throw CompilationStopped("compile: stopped, as was asked for");
}

class Stages {
 public:
  // Of CompileOptions, or of Options.
  Stages(Report& report, const auto& options)
      : report_(report), trace_(options.trace), stop_(options.stop) {}

  // The name must be a literal.
  template <class F>
  auto run(std::string_view name, F&& stage) {
    using Clock = std::chrono::steady_clock;
    check_goes_on(stop_);
    const trace::Span span(trace_, name, "compile");
    const Clock::time_point start = Clock::now();
    auto result = std::forward<F>(stage)();
    const std::chrono::duration<double, std::milli> taken = Clock::now() - start;
    plan::add_stage(report_, name, taken.count());
    return result;
  }

 private:
  Report& report_;
  trace::Recorder* trace_;
  std::stop_token stop_;
};

}  // namespace pantala::compiler
