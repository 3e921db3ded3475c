#include "tools/inspect/profile.h"

#include <algorithm>
#include <chrono>

#include "tools/profile/limits.h"

namespace pantala::tools {

namespace {

constexpr std::chrono::milliseconds kTime{500};
constexpr int kLeastSteps = 3;

// Numbers between -1 and 1 that repeat late; of integers zeros, which every reader takes.
Literal made_up(const Type& type) {
  Literal value(type);
  if (!is_float(type.dtype)) return value;
  std::uint32_t state = 1;
  for (std::int64_t k = 0; k < type.shape.numel(); ++k) {
    state = state * 1664525U + 1013904223U;
    value.f()[static_cast<std::size_t>(k)] = static_cast<double>(state >> 8) / (1 << 23) - 1;
  }
  return value;
}

}  // namespace

Session session_on_made_up_inputs(const Inspected& inspected) {
  Session session(compile_all(inspected));
  if (!inspected.weights.names().empty())
    session.load_weights(inspected.weights, {.strict = false});  // some may be of no output
  for (const std::string& name : session.inputs())
    session.set_input(name, made_up(inspected.graph.leaf(name).type()));
  session.step();  // memory gets its pages
  session.wait();
  return session;
}

double best_step_ms(Session& session) {
  using Clock = std::chrono::steady_clock;
  double best = 1e30;
  const Clock::time_point begin = Clock::now();
  for (int steps = 0; steps < kLeastSteps || Clock::now() - begin < kTime; ++steps) {
    const Clock::time_point start = Clock::now();
    session.step();
    session.wait();
    best = std::min(best, std::chrono::duration<double, std::milli>(Clock::now() - start).count());
  }
  return best;
}

std::string profile_picture(const Inspected& inspected, bool json) {
  Session session = session_on_made_up_inputs(inspected);
  session.set_timing(true, false);
  const auto begin = std::chrono::steady_clock::now();
  for (int steps = 0; steps < kLeastSteps || std::chrono::steady_clock::now() - begin < kTime;
       ++steps)
    session.step();
  const MachineLimits limits = probed_limits(inspected.options.threads, inspected.options.device);
  return json ? session.profile().json(limits) : session.profile().text(limits);
}

}  // namespace pantala::tools
