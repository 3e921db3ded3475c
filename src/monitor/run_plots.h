// Charts of runs: what a run's folder keeps as plots/, and several runs over each other.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "monitor/chart.h"
#include "monitor/run_series.h"

namespace pantala::monitor {

// What the runs have numbers for: "loss", "accuracy", "learning_rate", ...; sorted.
std::vector<std::string> metrics_of(const std::vector<RunSeries>& runs);

// One metric of one or several runs. The loss of one run: its steps raw and smoothed, its epochs'
// averages and its validation; of several: their smoothed steps, and their validation dashed. A
// metric of the steps is drawn over the steps, a metric of the validation over the epochs; its
// "validation_" may be left out. Losses and other errors that span decades have a logarithmic axis.
// TypeError with the nearest name if no run has it.
Chart plot_runs(const std::vector<RunSeries>& runs, std::string_view metric);

// Draws the metrics, or what there is of loss, accuracy, r2 and perplexity, into
// folder/METRIC.svg; the folder is made if it is missing. Returns the files.
std::vector<std::filesystem::path> write_plots(const std::vector<RunSeries>& runs,
                                               const std::filesystem::path& folder,
                                               std::vector<std::string> metrics = {});

}  // namespace pantala::monitor
