// Writes the log of a run into the folder that is given: 25 epochs of 40 steps, interrupted twice
// and continued from what a checkpoint had kept.
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <limits>
#include <string>

#include "monitor/run_log.h"

namespace {

using pantala::monitor::RunLog;

void train(RunLog& log, std::int64_t from, std::int64_t to) {
  constexpr std::int64_t kSteps = 40;
  for (std::int64_t step = from; step <= to; ++step) {
    const auto x = static_cast<double>(step);
    log.step({.epoch = (step - 1) / kSteps,
              .step = (step - 1) % kSteps,
              .global_step = step,
              .loss = step == 700 ? std::numeric_limits<double>::infinity()
                                  : 2.3 / std::sqrt(x) + 0.01 * std::sin(x * x),
              .learning_rate = 1e-3 / (1 + x / 3),
              .gradient_norm = 1 / 3.0 + x,
              .items_per_second = 51234.5,
              .memory_bytes = 123456789});
    if (step % kSteps == 0)
      log.epoch({.epoch = step / kSteps - 1,
                 .steps = kSteps,
                 .global_step = step,
                 .avg_loss = 2.4 / std::sqrt(x),
                 .seconds = 1.25,
                 .validation_loss = 2.5 / std::sqrt(x),
                 .metrics = {{"accuracy", 1 - 1 / std::sqrt(x)}, {"f1", 0.1}}});
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: write_sample_run FOLDER\n");
    return 2;
  }
  try {
    const pantala::monitor::RunLogOptions options{.log_interval = 5};
    std::string positions;
    {
      RunLog log(argv[1], options);
      train(log, 1, 333);
      positions = log.positions();
      train(log, 334, 400);
    }
    {
      RunLog log(argv[1], positions, options);
      train(log, 334, 600);
      positions = log.positions();
      train(log, 601, 607);
    }
    RunLog log(argv[1], positions, options);
    train(log, 601, 1000);
  } catch (const std::exception& error) {
    fmt::print(stderr, "write_sample_run: {}\n", error.what());
    return 1;
  }
  return 0;
}
