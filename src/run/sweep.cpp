// Sweeps and comparisons as C++ programs have them.
#include "pantala/sweep.h"

#include "run/comparison.h"
#include "run/grid.h"

namespace pantala::run {

SweepOutcome run_sweep(const SweepRequest& request) {
  std::vector<Assignment> assignments;
  if (!request.config.empty()) assignments = read_toml_file(request.config);
  for (const std::string& value : request.values) assignments.push_back(parse_set(value));
  std::vector<GridAxis> axes;
  for (const std::string& key : request.keys) axes.push_back(parse_axis(key));
  const Grid grid = make_grid(assignments, axes);
  const GridOutcome ended = run_grid(grid, {.run = request.options});
  SweepOutcome outcome{
      .interrupted = ended.interrupted, .diverged = ended.diverged, .failed = {}, .folders = {}};
  for (const GridRun& run : grid.runs) outcome.folders.push_back(run.config.output.folder);
  for (const GridFailure& failure : ended.failed)
    outcome.failed.push_back({outcome.folders[failure.number], failure.error});
  if (!outcome.interrupted) outcome.comparison = comparison_json(compare_grid(grid, ended)).dump();
  return outcome;
}

std::string compare(const std::vector<std::string>& folders, const std::string& metric) {
  return comparison_json(compare_runs(with_grid_runs(folders), metric)).dump();
}

}  // namespace pantala::run
