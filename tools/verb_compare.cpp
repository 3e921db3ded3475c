// pantala compare RUN...: what runs differ in, and which is the best.
#include <fmt/format.h>

#include <memory>

#include "run/comparison.h"
#include "run/grid.h"
#include "tools/command.h"
#include "tools/comparison_table.h"
#include "tools/options.h"

namespace pantala::tools {

namespace {

struct CompareOptions {
  std::vector<std::string> runs;
  std::string metric;
  bool csv = false, json = false;
};

int compare(const CompareOptions& options) {
  const run::Comparison comparison =
      run::compare_runs(run::with_grid_runs(options.runs), options.metric);
  if (options.json)
    fmt::print("{}\n", run::comparison_json(comparison).dump());
  else
    fmt::print("{}", options.csv ? comparison_csv(comparison) : comparison_text(comparison));
  return 0;
}

}  // namespace

Run compare_verb(VerbOptions& verb) {
  const auto options = std::make_shared<CompareOptions>();
  verb.add_option("RUN", options->runs,
                  "Folders of runs; that of a sweep stands for all of its runs")
      ->required();
  verb.add_option("--metric", options->metric,
                  "What says which is the best: loss, accuracy, perplexity, ... (without it: the "
                  "checkpoint.metric of the runs)");
  Option* json = verb.add_flag("--json", options->json, "One JSON object");
  verb.add_flag("--csv", options->csv, "A table with a header, with all metrics")->excludes(json);
  verb.footer(
      "Of the configs only those keys are shown that differ and change numbers. A run that is not\n"
      "finished is shown as it was after its last epoch.\n"
      "Examples:\n"
      "  pantala compare runs/a runs/b\n"
      "  pantala compare runs/mlp-iris-sweep --metric accuracy --csv");
  return [options] { return compare(*options); };
}

}  // namespace pantala::tools
