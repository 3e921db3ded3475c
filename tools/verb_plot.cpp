// pantala plot RUN...: draws the numbers that runs have left behind.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "io/file.h"
#include "monitor/run_plots.h"
#include "pantala/error.h"
#include "run/grid.h"
#include "tools/command.h"
#include "tools/options.h"

namespace pantala::tools {

namespace {

namespace fs = std::filesystem;

struct PlotOptions {
  std::vector<std::string> runs, metrics;
  std::string out;
  bool json = false;
};

// Runs of the same name in different folders are told apart by their paths.
void make_names_different(std::vector<monitor::RunSeries>& runs,
                          const std::vector<std::string>& paths) {
  std::multiset<std::string> names;
  for (const monitor::RunSeries& run : runs) names.insert(run.name);
  for (std::size_t k = 0; k < runs.size(); ++k)
    if (names.count(runs[k].name) > 1) runs[k].name = paths[k];
}

// Beside what is drawn, or here if that is several folders.
fs::path usual_folder(const std::vector<std::string>& given) {
  return given.size() == 1 ? fs::path(given[0]) / "plots" : fs::path("plots");
}

std::vector<fs::path> draw(const PlotOptions& options) {
  const std::vector<std::string> folders = run::with_logged_runs(options.runs);
  std::vector<monitor::RunSeries> runs;
  for (const std::string& folder : folders) runs.push_back(monitor::read_run(folder));
  if (runs.empty()) throw IoError("no run of the sweep has logged anything yet");
  make_names_different(runs, folders);
  const fs::path out = options.out;
  if (out.extension() == ".svg") {
    if (options.metrics.size() > 1)
      throw TypeError(fmt::format("{} is one file for {} metrics; expected a folder", out.string(),
                                  options.metrics.size()));
    const std::string metric = options.metrics.empty() ? "loss" : options.metrics[0];
    io::write_file(out, monitor::svg(monitor::plot_runs(runs, metric)));
    return {out};
  }
  return monitor::write_plots(runs, options.out.empty() ? usual_folder(options.runs) : out,
                              options.metrics);
}

}  // namespace

Run plot_verb(VerbOptions& verb) {
  const auto options = std::make_shared<PlotOptions>();
  verb.add_option("RUN", options->runs,
                  "Folders of runs, or of a sweep; several are drawn over each other")
      ->required();
  verb.add_option("--out", options->out,
                  "A folder, or one file NAME.svg (without it: RUN/plots, for several runs plots)");
  verb.add_option("--metric", options->metrics,
                  "What to draw: loss, accuracy, learning_rate, ... (without it: the loss, and "
                  "accuracy or r2 if there is one)")
      ->repeatable();
  verb.add_flag("--json", options->json, "The files as a JSON object");
  return [options] {
    const std::vector<fs::path> files = draw(*options);
    if (options->json) {
      auto list = nlohmann::ordered_json::array();
      for (const fs::path& file : files) list.push_back(file.string());
      fmt::print("{}\n", nlohmann::ordered_json{{"plots", list}}.dump());
    } else {
      for (const fs::path& file : files) fmt::print("{}\n", file.string());
    }
    return 0;
  };
}

}  // namespace pantala::tools
