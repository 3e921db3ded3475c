// pantala bench: how long a step of a workload takes.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <thread>
#include <vector>

#include "base/doing.h"
#include "base/text.h"
#include "compiler/pipeline.h"
#include "pantala/error.h"
#include "pantala/session.h"
#include "runtime/session_data.h"
#include "tools/bench/workloads.h"
#include "tools/command.h"
#include "tools/compile_flags.h"
#include "tools/options.h"
#include "tools/profile/limits.h"

namespace pantala::tools {

namespace {

using Clock = std::chrono::steady_clock;
double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

struct BenchOptions {
  std::vector<std::string> workloads;
  bool infer = false, json = false, kernels = false, unfused = false, data = false,
       plan_only = false;
  double seconds = 2;
  int threads = 0;
  std::string cache, trace, target;
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
  while (milliseconds_since(begin) < options.seconds * 1000 || m.steps.size() < 3) {
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

void print_text(const std::string& name, const BenchOptions& options, const Measured& m,
                const Session& session) {
  const Report& report = session.report();
  fmt::print(
      "{} {}: {:.3f} ms (median {:.3f}) a step, {} steps, {}; compiled in {:.0f} ms, ready after "
      "{:.0f} ms, first step after {:.0f} ms; {} kernels, {} units, {:.1f} KiB of temporaries\n",
      name, options.infer ? "infer" : "train", m.steps.front(), m.median(), m.steps.size(),
      options.infer ? fmt::format("output {:.4f}", m.last)
                    : fmt::format("loss {:.4f} to {:.4f}", m.first, m.last),
      m.compile_ms, m.ready_ms, m.first_step_ms, report.kernels_after, report.units.size(),
      static_cast<double>(report.peak_bytes) / 1024);
  if (options.kernels)
    fmt::print("{}",
               session.profile().text(probed_limits(options.threads, options.compile.device)));
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

nlohmann::ordered_json line_of(const std::string& name, const BenchOptions& options) {
  return {{"workload", name},
          {"mode", options.infer ? "infer" : "train"},
          {"device", options.compile.device.empty() ? "cpu" : options.compile.device},
          {"threads", options.threads}};
}

// What the plan says, whether it ran or not.
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

void print_json(const std::string& name, const BenchOptions& options, const Measured& m,
                const Session& session) {
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
  fmt::print("{}\n", line.dump());
}

// As it would be run, without code and without a step.
void plan_workload(const std::string& name, const BenchOptions& options) {
  const Doing planning("planning " + name);
  const Workload w = make_workload(name, options.infer ? BenchMode::infer : BenchMode::train);
  const CompileOptions compile = compile_options(w, options);
  const Graph graph = options.infer ? w.graph.without_updates() : w.graph;
  const auto given = options.infer ? compiler::Compilation::plain(graph, compile)
                                   : compiler::Compilation::training(graph, w.loss, compile);
  Report canonical;
  const compiler::StepGraph step = compiler::make_step_graphs(given, canonical).at(0);
  compiler::Options lower = compiler::host_options(compile);
  lower.code = false;
  const Report report = compiler::compile_step(step, lower).report;
  if (!options.json) {
    fmt::print("{}", report.text());
    return;
  }
  nlohmann::ordered_json line = line_of(name, options);
  add_figures(report, line);
  if (options.kernels) {
    line["launches"] = nlohmann::ordered_json::array();
    for (const Report::Launch& launch : report.launches)
      line["launches"].push_back({{"name", launch.name},
                                  {"layers", launch.layers},
                                  {"ops", launch.ops},
                                  {"flops", launch.flops},
                                  {"read_bytes", launch.read_bytes},
                                  {"written_bytes", launch.written_bytes},
                                  {"predicted_us", launch.predicted_us}});
  }
  fmt::print("{}\n", line.dump());
}

void run_workload(const std::string& name, const BenchOptions& options) {
  const Doing running("running " + name);
  Measured m;
  m.idle_bytes = resident_peak();
  const Workload w = make_workload(name, options.infer ? BenchMode::infer : BenchMode::train);
  const Clock::time_point start = Clock::now();
  Session session = [&] {
    const Doing doing("compiling " + name);
    return open(w, options);
  }();
  m.compile_ms = milliseconds_since(start);
  for (const auto& [input, value] : w.inputs) session.set_input(input, value);
  session.data().store().settle();  // a run's first values; those that are compared come now
  m.ready_ms = milliseconds_since(start);
  set_weights(w, session);
  if (!options.trace.empty()) session.set_timing(true, true);
  measure(session, w, options, m);
  (options.json ? print_json : print_text)(name, options, m, session);
  if (!options.trace.empty()) session.write_trace(options.trace);
}

void check(const BenchOptions& options) {
  guard_named(options.guard);
  CompileOptions unused;
  options.compile.apply(unused);
  for (const std::string& name : options.workloads) require_workload(name);
  if (options.workloads.size() > 1 && !(options.cache.empty() && options.trace.empty()))
    throw TypeError("--cache and --trace are files of one workload");
  if (options.plan_only && !(options.cache.empty() && options.trace.empty()))
    throw TypeError("--plan-only makes no code and runs nothing: it has no --cache and no --trace");
  if (std::isnan(options.seconds)) throw TypeError("--seconds must be a number, got nan");
}

}  // namespace

Run bench_verb(VerbOptions& verb) {
  const auto options = std::make_shared<BenchOptions>();
  verb.add_option("workload", options->workloads,
                  fmt::format("Any of {}, or ONNX files; lenet64 and tfm8 also with other sizes: "
                              "lenet64:batch=8, tfm8:layers=2,sequence=128",
                              fmt::join(workload_names(), ", ")))
      ->required();
  verb.add_flag("--infer", options->infer,
                "The model's outputs, in its form for evaluation, instead of a training step");
  verb.add_option("--seconds", options->seconds, "How long to measure")
      ->between(0.0, 3600.0)
      ->capture_default_str();
  verb.add_option("--threads", options->threads, "Threads that compute; 0: one per CPU")
      ->between(0, 1024)
      ->capture_default_str();
  verb.add_flag("--data", options->data,
                "A step begins with setting its inputs and ends with reading the loss");
  verb.add_flag("--json", options->json, "One JSON object a line");
  verb.add_flag("--kernels", options->kernels,
                "Also a table of the launches: layers, time, GFLOP/s, GB/s; with --json as "
                "`launches`");
  verb.add_flag("--unfused", options->unfused, "A kernel per op");
  verb.add_option("--guard", options->guard,
                  "What is done about numbers that are not finite: watched (as train does), "
                  "gradients, loss or "
                  "none")
      ->capture_default_str();
  add_compile_flags(verb, options->compile);
  verb.add_option("--greedy-order", options->greedy_order,
                  "With --rewrite greedy: the rules in another order, drawn by this number; 0: as "
                  "they are listed")
      ->between(0, 1'000'000)
      ->capture_default_str();
  verb.add_option("--target", options->target,
                  "Code for a class of processors, such as x86-64-v3 (AVX2), that this one belongs "
                  "to; not given: for this one");
  verb.add_option("--cache", options->cache, "Take the plan from this file, or write it there");
  verb.add_option("--trace", options->trace, "Write a trace for Perfetto");
  verb.add_flag("--plan-only", options->plan_only,
                "Make no code and run nothing: what the plan says of itself, with --json --kernels "
                "also of its launches");
  return [options] {
    if (options->threads == 0)
      options->threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    check(*options);  // before anything takes its time
    for (const std::string& name : options->workloads)
      (options->plan_only ? plan_workload : run_workload)(name, *options);
    return 0;
  };
}

}  // namespace pantala::tools
