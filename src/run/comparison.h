// Runs side by side: what their configs differ in, and how good they became.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/json.h"
#include "run/core/config.h"

namespace pantala::run {

struct ComparedRun {
  std::string folder;
  std::string state;  // finished, stopped early, diverged, failed or unfinished
  std::vector<std::optional<ConfigValue>> values;  // of the keys that differ; none: it has no such
  // train_loss, and loss and the metrics of the validation: of the result, or of the last epoch so
  // far.
  std::vector<std::pair<std::string, double>> metrics;
  std::int64_t steps = 0;

  std::optional<double> metric(std::string_view name) const;
};

struct Comparison {
  std::string metric;  // that says which is the best
  std::vector<std::string> keys;
  std::vector<ComparedRun> runs;
  std::optional<std::size_t> best;  // none: no run has a number

  std::vector<std::string> metrics() const;  // what any of them has, in the order of the table
};

// Keys that change no number (threads, output.*) are left out. `metric` is "", or one that some run
// has: TypeError with the nearest name. "": the runs' checkpoint.metric if they agree, else the
// loss; train_loss where there was no validation. IoError for what is no run folder, unless it is
// among those that `failed`, with the config that it was to have.
Comparison compare_runs(const std::vector<std::string>& folders, const std::string& metric = "",
                        const std::map<std::string, RunConfig>& failed = {});

io::OrderedJson comparison_json(const Comparison& comparison);

}  // namespace pantala::run
