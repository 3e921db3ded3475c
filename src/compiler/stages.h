// The clock of the pipeline: every stage is run through a Stages, which notes its name and time in
// a report and as a span of the trace, if there is one. A stage that is run for several graphs is
// noted once in the report, with the sum. None begins once a stop is requested.
#pragma once

#include <chrono>
#include <functional>
#include <string_view>
#include <utility>

#include "base/trace.h"
#include "pantala/cancelled.h"
#include "plan/report.h"

namespace pantala::compiler {

inline void check_not_cancelled(const std::function<bool()>& cancelled) {
  if (cancelled && cancelled()) throw CancelledError("the compilation was called off");
}

class Stages {
 public:
  // Of CompileOptions, or of Options.
  Stages(Report& report, const auto& options)
      : report_(report), trace_(options.trace), cancelled_(options.cancelled) {}

  // The name must be a literal. CancelledError if the compilation was called off before.
  template <class F>
  auto run(std::string_view name, F&& stage) {
    using Clock = std::chrono::steady_clock;
    check_not_cancelled(cancelled_);
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
  std::function<bool()> cancelled_;
};

}  // namespace pantala::compiler
