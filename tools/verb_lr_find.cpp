// pantala lr-find: one number, and the plot that it was read from.
#include <fmt/format.h>

#include <memory>

#include "base/text.h"
#include "io/file.h"
#include "io/json.h"
#include "monitor/chart.h"
#include "monitor/records.h"
#include "run/lr_sweep.h"
#include "run/models/model.h"
#include "run/setup.h"
#include "tools/command.h"
#include "tools/config_flags.h"
#include "tools/options.h"
#include "tools/process.h"

namespace pantala::tools {

namespace {

struct LrFindOptions {
  run::RateSweepOptions sweep;
  std::string plot = "lr-find.svg";
  bool json = false;
};

std::vector<monitor::Point> curve(const std::vector<run::RateSweepPoint>& points) {
  std::vector<monitor::Point> result;
  for (const run::RateSweepPoint& point : points) result.push_back({point.lr, point.loss});
  return result;
}

std::string draw(const run::RateSweep& sweep, const run::RunConfig& config) {
  monitor::Chart chart;
  chart.title = fmt::format("Learning rates: {} on {}, {}", run::model_title(config),
                            config.data.source, config.optimizer.name);
  chart.x_label = "learning rate";
  chart.y_label = "loss";
  chart.log_x = true;
  chart.curves = {{.label = "loss of a step",
                   .points = curve(sweep.points),
                   .colour = 0,
                   .stroke = monitor::Stroke::faint},
                  {.label = "smoothed", .points = curve(sweep.smoothed), .colour = 0}};
  for (const run::RateSweepPoint& point : sweep.smoothed)
    if (point.lr == sweep.suggestion)
      chart.marks.push_back({{point.lr, point.loss}, fmt::format("{:.2g}", point.lr)});
  return monitor::svg(chart);
}

int find(const run::RunConfig& config, const LrFindOptions& options) {
  if (config.output.progress != "none") print_error("{}\n", run::device_line(config));
  run::RateSweepOptions how = options.sweep;
  how.plan_cache = plan_cache();
  const run::RateSweep sweep = run::sweep_learning_rates(config, how);
  // Two digits are all that a plot can tell.
  const std::string suggestion = exact(std::stod(fmt::format("{:.1e}", sweep.suggestion)));
  io::write_file(options.plot, draw(sweep, config));
  if (options.json) {
    io::OrderedJson json{{"lr", std::stod(suggestion)}, {"plot", monitor::printable(options.plot)}};
    for (const run::RateSweepPoint& point : sweep.smoothed)
      json["points"].push_back({{"lr", point.lr}, {"loss", point.loss}});
    fmt::print("{}\n", json.dump());
    return 0;
  }
  if (config.output.progress != "none")
    print_error("the loss falls fastest at this rate ({} steps up to {:.2g}; plot: {})\n",
                sweep.points.size(), sweep.points.back().lr, options.plot);
  fmt::print("{}\n", suggestion);
  return 0;
}

}  // namespace

Run lr_find_verb(VerbOptions& verb) {
  const auto options = std::make_shared<LrFindOptions>();
  const std::shared_ptr<ConfigFlags> flags = add_config_flags(verb);
  verb.add_option("--first", options->sweep.from, "The first rate")->capture_default_str();
  verb.add_option("--last", options->sweep.to, "The last rate")->capture_default_str();
  verb.add_option("--steps", options->sweep.steps, "Updates of the weights in between")
      ->between(10, 10000)
      ->capture_default_str();
  verb.add_option("--plot", options->plot, "Where the plot is written")->capture_default_str();
  verb.add_flag("--json", options->json, "One JSON object, with the points of the curve");
  verb.footer(
      "Trains from fresh weights while the rate grows exponentially, smooths the loss, and prints\n"
      "the rate where it falls fastest. It stops where the loss explodes. Nothing else is kept.\n"
      "Examples:\n"
      "  pantala lr-find --model lenet --data fashion-mnist\n"
      "  pantala lr-find run.toml --optimizer sgd --plot sgd.svg");
  return [options, flags] { return find(flags->config(), *options); };
}

}  // namespace pantala::tools
