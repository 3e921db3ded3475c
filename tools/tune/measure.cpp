#include "tools/tune/measure.h"

#include <algorithm>
#include <limits>

namespace pantala::tools {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kLeastRuns = 3, kMostRuns = 2000;

// Of every launch and of the whole, so far.
struct Totals {
  std::vector<double> launch_us;
  double run_us = 0;

  static Totals of(const Session& session) {
    Totals totals;
    for (const KernelInfo& kernel : session.kernels())
      totals.launch_us.push_back(1000 * kernel.milliseconds);
    totals.run_us = 1000 * session.profile().milliseconds();
    return totals;
  }
};

void run_for(Session& session, double seconds, Measured& measured) {
  session.step();  // touches memory for the first time
  session.step();
  session.wait();
  session.set_timing(true, false);
  Totals before = Totals::of(session);
  measured.launch_us.assign(before.launch_us.size(), std::numeric_limits<double>::infinity());
  std::vector<double> overheads;
  const Clock::time_point begin = Clock::now();
  for (int runs = 0; runs < kMostRuns; ++runs) {
    if (runs >= kLeastRuns && std::chrono::duration<double>(Clock::now() - begin).count() > seconds)
      break;
    session.step();
    session.wait();
    Totals now = Totals::of(session);
    double overhead = now.run_us - before.run_us;
    for (std::size_t k = 0; k < now.launch_us.size(); ++k) {
      const double taken = now.launch_us[k] - before.launch_us[k];
      measured.launch_us[k] = std::min(measured.launch_us[k], taken);
      overhead -= taken;
    }
    overheads.push_back(overhead);
    before = std::move(now);
  }
  std::ranges::nth_element(overheads, overheads.begin() + std::ssize(overheads) / 2);
  measured.overhead_us = overheads[overheads.size() / 2];
}

CompileOptions options_for(const Machine& machine) {
  CompileOptions options;
  options.device = machine.device;
  options.target = machine.target;
  options.threads = machine.threads;
  options.rewrite = Rewrite::none;
  return options;
}

}  // namespace

std::vector<double> Measured::predicted_us(const schedule::CostTable& table) const {
  schedule::CostTable nominal = table;
  if (!machine.takes_times()) nominal.workers = machine.threads;
  std::vector<double> predicted;
  for (const schedule::KernelCost& cost : predictions.by(nominal))
    predicted.push_back(cost.microseconds - (machine.takes_times() ? 0 : cost.overhead));
  return predicted;
}

Measured measure(const Probe& probe, const Machine& machine, double seconds) {
  const Machine used{machine.device, machine.target, probe.is_alone ? 1 : machine.threads};
  const CompileOptions options = options_for(used);
  Measured measured{probe.name,
                    used,
                    compiler::Predictions(compiler::Compilation::plain(probe.graph, options)),
                    {}};
  Session session = build_inference_session(probe.graph, options);
  for (const auto& [name, value] : probe.inputs) session.set_input(name, value);
  run_for(session, seconds, measured);
  return measured;
}

Measured measure(const Workload& workload, const Machine& machine, double seconds) {
  CompileOptions options = options_for(machine);
  options.optimizer = workload.optimizer;
  Measured measured{workload.name,
                    machine,
                    compiler::Predictions(
                        compiler::Compilation::training(workload.graph, workload.loss, options)),
                    {}};
  Session session = build_session(workload.graph, workload.loss, options);
  set_weights(workload, session);
  for (const auto& [name, value] : workload.inputs) session.set_input(name, value);
  run_for(session, seconds, measured);
  return measured;
}

}  // namespace pantala::tools
