#include "tools/bench_measure.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "base/doing.h"
#include "base/text.h"
#include "pantala/error.h"
#include "runtime/session_data.h"
#include "tools/profile/limits.h"

namespace pantala::tools {

NonFiniteGuard guard_named(const std::string& name) {
  const std::vector<std::string>& names = guard_names();
  const auto found = std::ranges::find(names, name);
  if (found == names.end())
    throw TypeError(fmt::format("--guard must be one of {}, got '{}'{}", fmt::join(names, ", "),
                                name, did_you_mean(name, names)));
  return static_cast<NonFiniteGuard>(found - names.begin());
}

CompileOptions compile_options(const Workload& w, const BenchOptions& options) {
  CompileOptions compile;
  compile.threads = options.threads;
  compile.optimize = !options.unfused;
  compile.target = options.target;
  compile.greedy_order = options.greedy_order;
  options.compile.apply(compile);
  if (!options.infer) {
    compile.optimizer = w.optimizer;
    compile.non_finite = guard_named(options.guard);
  }
  return compile;
}

namespace {

using Clock = std::chrono::steady_clock;
double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

Session open(const Workload& w, const BenchOptions& options) {
  const CompileOptions compile = compile_options(w, options);
  if (options.infer)
    return options.cache.empty() ? build_inference_session(w.graph, compile)
                                 : build_inference_session_cached(w.graph, compile, options.cache);
  if (!options.cache.empty()) return build_session_cached(w.graph, w.loss, compile, options.cache);
  return build_session(w.graph, w.loss, compile);
}

// A number that shows whether what was computed makes sense.
double figure_of(const Session& session, const BenchOptions& options) {
  if (!options.infer) return session.loss();
  const Literal output = session.output(session.outputs().at(0));
  double squares = 0;
  for (const double x : output.f()) squares += x * x;
  return std::sqrt(squares / static_cast<double>(output.numel()));
}

// What a launch took of the last step, if it is the least so far.
class BestLaunches {
 public:
  explicit BestLaunches(const Session& session) : before_(times_of(session)) {}
  void note_step(const Session& session) {
    std::vector<double> now = times_of(session);
    best_.resize(now.size(), std::numeric_limits<double>::infinity());
    for (std::size_t k = 0; k < now.size(); ++k) best_[k] = std::min(best_[k], now[k] - before_[k]);
    before_ = std::move(now);
  }
  std::vector<double> take() { return std::move(best_); }

 private:
  static std::vector<double> times_of(const Session& session) {
    std::vector<double> times;
    for (const KernelInfo& kernel : session.kernels()) times.push_back(kernel.milliseconds);
    return times;
  }
  std::vector<double> before_, best_;
};

// Milliseconds after which less than three steps are enough: software takes minutes for one of a
// large model.
constexpr double kPatience = 20'000;

// The first step is not among those that are timed: it touches memory for the first time. A trace
// shows it.
void measure(Session& session, const Workload& w, const BenchOptions& options, Measured& m) {
  const Clock::time_point start = Clock::now();
  session.step();
  session.wait();
  m.first_step_ms = m.ready_ms + milliseconds_since(start);
  if (options.kernels && options.trace.empty()) session.set_timing(true);
  m.first = figure_of(session, options);
  std::optional<BestLaunches> best;
  if (options.kernels && options.trace.empty()) best.emplace(session);
  const Clock::time_point begin = Clock::now();
  const auto goes_on = [&] {
    const double taken = milliseconds_since(begin);
    return m.steps.empty() || taken < options.seconds * 1000 ||
           (m.steps.size() < 3 && taken < kPatience);
  };
  while (goes_on()) {
    const Clock::time_point step = Clock::now();
    if (options.data)
      for (const auto& [input, value] : w.inputs) session.set_input(input, value);
    session.step();
    if (options.data)
      figure_of(session, options);
    else
      session.wait();
    m.steps.push_back(milliseconds_since(step));
    if (best) best->note_step(session);
  }
  m.last = figure_of(session, options);
  std::sort(m.steps.begin(), m.steps.end());
  if (best) m.launches = best->take();
}

// The most that the process ever had in memory.
std::int64_t resident_peak() {
  rusage usage{};
  return getrusage(RUSAGE_SELF, &usage) == 0 ? std::int64_t{usage.ru_maxrss} * 1024 : 0;
}

// The launches as the profile has them: those that took longest first.
nlohmann::ordered_json launches_json(const Measured& m, const Session& session,
                                     nlohmann::ordered_json launches) {
  const std::vector<KernelInfo> kernels = session.kernels();
  std::vector<std::size_t> order(kernels.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::ranges::greater{},
                           [&](std::size_t k) { return kernels[k].milliseconds; });
  for (std::size_t k = 0; k < m.launches.size(); ++k)
    launches[k]["best_us"] = 1000 * m.launches[order[k]];
  return launches;
}

}  // namespace

Benched bench(const Workload& w, const BenchOptions& options) {
  Measured m;
  m.idle_bytes = resident_peak();
  const Clock::time_point start = Clock::now();
  Session session = [&] {
    const Doing doing("compiling " + w.name);
    return open(w, options);
  }();
  m.compile_ms = milliseconds_since(start);
  for (const auto& [input, value] : w.inputs) session.set_input(input, value);
  session.data().store().settle();  // a run's first values; those that are compared come now
  m.ready_ms = milliseconds_since(start);
  set_weights(w, session);
  if (!options.trace.empty()) session.set_timing(true, true);
  measure(session, w, options, m);
  return {std::move(session), std::move(m)};
}

nlohmann::ordered_json line_of(const std::string& name, const BenchOptions& options) {
  return {{"workload", name},
          {"mode", options.infer ? "infer" : "train"},
          {"device", options.compile.device.empty() ? "cpu" : options.compile.device},
          {"threads", options.threads}};
}

void add_figures(const Report& report, nlohmann::ordered_json& line) {
  line["kernels"] = report.kernels_after;
  line["units"] = report.units.size();
  line["peak_bytes"] = report.peak_bytes;
  line["nodes"] = report.nodes_after;
  line["bytes"] = report.bytes;
  line["predicted_us"] = report.predicted_us;
  line["rules"] = nlohmann::ordered_json::object();
  for (const Report::Rule& rule : report.rules) line["rules"][rule.name] = rule.reached;
}

nlohmann::ordered_json figures(const std::string& name, const BenchOptions& options,
                               const Benched& benched) {
  const auto& [session, m] = benched;
  const Report& report = session.report();
  nlohmann::ordered_json line = line_of(name, options);
  line["ms_min"] = m.steps.front();
  line["ms_median"] = m.median();
  line["steps"] = m.steps.size();
  if (options.infer) {
    line["output_rms"] = m.last;
  } else {
    line["loss_first"] = m.first;
    line["loss_last"] = m.last;
  }
  line["compile_ms"] = m.compile_ms;
  line["ready_ms"] = m.ready_ms;
  line["first_step_ms"] = m.first_step_ms;
  line["cached"] = report.cached();
  add_figures(report, line);
  line["resident_idle_bytes"] = m.idle_bytes;
  line["resident_peak_bytes"] = resident_peak();
  if (options.kernels) {
    const auto profile = nlohmann::ordered_json::parse(
        session.profile().json(probed_limits(options.threads, options.compile.device)));
    line["limits"] = profile.at("limits");
    line["launches"] = launches_json(m, session, profile.at("kernels"));
    line["kinds"] = profile.at("kinds");
    line["totals"] = profile.at("totals");
  }
  return line;
}

}  // namespace pantala::tools
