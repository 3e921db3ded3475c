// pantala bench: how long a step of a workload takes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <thread>

#include "base/doing.h"
#include "pantala/error.h"
#include "tools/bench_measure.h"
#include "tools/bench_plan.h"
#include "tools/bench_report.h"
#include "tools/command.h"
#include "tools/options.h"
#include "tools/profile/limits.h"

namespace pantala::tools {

namespace {

void print_text(const std::string& name, const BenchOptions& options, const Benched& benched) {
  const auto& [session, m] = benched;
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

void run_workload(const std::string& name, const BenchOptions& options) {
  const Doing running("running " + name);
  Benched benched =
      bench(make_workload(name, options.infer ? BenchMode::infer : BenchMode::train), options);
  if (options.json)
    fmt::print("{}\n", figures(name, options, benched).dump());
  else
    print_text(name, options, benched);
  if (!options.trace.empty()) benched.session.write_trace(options.trace);
}

void check(const BenchOptions& options) {
  guard_named(options.guard);
  CompileOptions unused;
  options.compile.apply(unused);
  if (options.workloads.empty() && !options.all)
    throw TypeError("workload is required: one or more of them, or --all");
  if (!options.workloads.empty() && options.all)
    throw TypeError("--all are all workloads: name some, or give --all");
  for (const std::string& name : options.workloads) require_workload(name);
  if (options.workloads.size() > 1 && !(options.cache.empty() && options.trace.empty()))
    throw TypeError("--cache and --trace are files of one workload");
  if (options.plan_only && !(options.cache.empty() && options.trace.empty()))
    throw TypeError("--plan-only makes no code and runs nothing: it has no --cache and no --trace");
  if (options.plan_only && !options.report.empty())
    throw TypeError("--plan-only runs nothing: it has no --report");
  if (std::isnan(options.seconds)) throw TypeError("--seconds must be a number, got nan");
}

}  // namespace

Run bench_verb(VerbOptions& verb) {
  const auto options = std::make_shared<BenchOptions>();
  verb.add_option("workload", options->workloads,
                  fmt::format("Any of {}, or ONNX files; lenet64 and tfm8 also with other sizes: "
                              "lenet64:batch=8, tfm8:layers=2,sequence=128",
                              fmt::join(workload_names(), ", ")));
  verb.add_flag("--all", options->all, "All workloads that have names");
  verb.add_option("--report", options->report,
                  "Write what there is to know of the device and of all workloads to this JSON "
                  "file; a workload that fails is listed in it, and the others go on");
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
    if (options->all) options->workloads = workload_names();
    if (!options->report.empty()) return write_bench_report(*options);
    for (const std::string& name : options->workloads)
      (options->plan_only ? plan_workload : run_workload)(name, *options);
    return 0;
  };
}

}  // namespace pantala::tools
