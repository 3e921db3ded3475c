#include "tools/sweep.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>

#include "base/text.h"
#include "io/json.h"
#include "run/comparison.h"
#include "run/grid.h"
#include "tools/command.h"
#include "tools/comparison_table.h"
#include "tools/process.h"
#include "tools/signals.h"

namespace pantala::tools {

namespace {

std::string values_text(const run::GridRun& one) {
  std::vector<std::string> parts;
  for (const run::Assignment& value : one.values)
    parts.push_back(fmt::format("{}={}", value.key, run::value_text(value.value)));
  return fmt::format("{}", fmt::join(parts, " "));
}

int print_grid(const run::Grid& grid, bool json) {
  if (json) {
    auto runs = io::OrderedJson::array();
    for (const run::GridRun& one : grid.runs)
      runs.push_back({{"folder", one.config.output.folder}, {"values", values_text(one)}});
    fmt::print("{}\n", io::OrderedJson{{"runs", runs}}.dump());
    return 0;
  }
  fmt::print("{} in {}:\n", counted(grid.runs.size(), "run"), grid.folder.string());
  for (const run::GridRun& one : grid.runs)
    fmt::print("  {}: {}\n", one.config.output.folder, values_text(one));
  return 0;
}

// The table, and the plots over all.
void print_comparison(const run::Grid& grid, const run::GridOutcome& outcome, bool json) {
  const run::Comparison comparison = run::compare_grid(grid, outcome);
  std::vector<std::string> plots;
  if (grid.runs[0].config.output.plots)
    for (const auto& file : run::draw_grid(grid.folder)) plots.push_back(file.string());
  if (json) {
    io::OrderedJson result = run::comparison_json(comparison);
    result["plots"] = plots;
    fmt::print("{}\n", result.dump());
    return;
  }
  fmt::print("{}", comparison_text(comparison));
  for (const std::string& plot : plots) fmt::print("plot: {}\n", plot);
}

int train_grid(const run::Grid& grid, const SweepCommand& options) {
  const SignalWatch signals;
  const auto begins = [&](std::size_t number, const run::GridRun& one) {
    if (one.config.output.progress == "none") return;
    options.tell(one.config, "sweep",
                 fmt::format("run {} of {}: {}", number + 1, grid.runs.size(), values_text(one)));
  };
  const run::GridOutcome outcome =
      run::run_grid(grid, {.run = {.resume = options.resume,
                                   .restart = options.restart,
                                   .poll = [&](const Trainer&) { return signals.poll(); },
                                   .surroundings = surroundings()},
                           .begins = begins,
                           .stop = [&] { return signals.stop_requested(); }});
  if (outcome.interrupted) {
    const run::RunConfig& config = grid.runs[outcome.number].config;
    options.tell(
        config, "pantala",
        fmt::format("{}: stopped in run {} of {} ({}); {}", signals.stop_signal(),
                    outcome.number + 1, grid.runs.size(), config.output.folder, options.way_on));
    return kExitInterrupted;
  }
  print_comparison(grid, outcome, options.json);
  if (!outcome.failed.empty()) {
    std::fflush(stdout);  // the message comes behind the table
    std::rethrow_exception(outcome.failed[0].error);
  }
  return outcome.diverged == grid.runs.size() ? kExitDiverged : 0;
}

}  // namespace

int sweep(const ConfigFlags& flags, const SweepCommand& options) {
  std::vector<run::GridAxis> axes;
  for (const std::string& text : options.keys) axes.push_back(run::parse_axis(text));
  const run::Grid grid = run::make_grid(flags.assignments(), axes);
  return options.dry_run ? print_grid(grid, options.json) : train_grid(grid, options);
}

}  // namespace pantala::tools
