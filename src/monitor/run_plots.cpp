#include "monitor/run_plots.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>

#include "base/text.h"
#include "io/file.h"
#include "io/file_changes.h"
#include "io/system_error.h"
#include "pantala/error.h"

namespace pantala::monitor {

namespace {

std::string short_name(std::string_view field) {
  const bool validation = field.starts_with(kValidationPrefix) && field != "validation_loss";
  return std::string(validation ? field.substr(kValidationPrefix.size()) : field);
}

template <class Record>
void add_names(const std::vector<Record>& records, std::set<std::string>& names) {
  for (const Record& record : records)
    for (const Field& field : fields_of(record))
      if (!is_place(field.name)) names.insert(short_name(field.name));
}

// The points of a field over the global step, or over the number of finished epochs.
template <class Record>
std::vector<Point> points_of(const std::vector<Record>& records, std::string_view name,
                             bool over_epochs) {
  std::vector<Point> points;
  for (const Record& record : records)
    for (const Field& field : fields_of(record))
      if (short_name(field.name) == name)
        points.push_back(
            {static_cast<double>(over_epochs ? record.epoch + 1 : record.global_step),
             std::visit([](auto value) { return static_cast<double>(value); }, field.value)});
  return points;
}

// Names come from files that may be anything.
std::string file_name_of(std::string_view metric) {
  std::string name = short_name(metric);
  for (char& c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '-';
    if (!plain) c = '-';
  }
  return name + ".svg";
}

std::string title_of(const std::vector<RunSeries>& runs, std::string_view what) {
  std::string title(what);
  std::ranges::replace(title, '_', ' ');
  if (!title.empty() && title[0] >= 'a' && title[0] <= 'z')
    title[0] = static_cast<char>(title[0] - 'a' + 'A');
  return runs.size() == 1 ? fmt::format("{}: {}", title, runs[0].name) : title;
}

// Metrics that fall towards 0 as a run goes well.
bool is_error(std::string_view name) {
  return name == "loss" || name == "validation_loss" || name == "perplexity" || name == "rmse" ||
         name == "mae";
}

// A logarithmic axis for errors that span decades: those of a run that has converged would lie on
// the axis otherwise. Single steps behind a smooth curve are not asked.
void choose_axis(Chart& chart) {
  constexpr double kSpan = 30;
  double low = std::numeric_limits<double>::infinity(), high = 0;
  for (const Curve& curve : chart.curves) {
    if (curve.stroke == Stroke::faint) continue;
    for (const Point& point : curve.points) {
      if (!std::isfinite(point.y)) continue;
      if (point.y < 0) return;
      if (point.y > 0) low = std::min(low, point.y);
      high = std::max(high, point.y);
    }
  }
  if (high < kSpan * low) return;
  chart.log_y = true;
  chart.y_label += " (logarithmic)";
}

Chart loss_of_one(const RunSeries& run) {
  Chart chart{.title = title_of({run}, "loss"),
              .x_label = "step",
              .y_label = "loss",
              .curves = {},
              .whole_x = true,
              .y_from_zero = true};
  const std::vector<Point> steps = points_of(run.steps, "loss", false);
  if (!steps.empty()) {
    chart.curves.push_back({"training steps", steps, 0, Stroke::faint});
    chart.curves.push_back({"smoothed", smoothed(steps), 0, Stroke::plain});
  }
  chart.curves.push_back(
      {"average of epoch", points_of(run.epochs, "loss", false), 2, Stroke::marked});
  std::vector<Point> validation = points_of(run.epochs, "validation_loss", false);
  if (!validation.empty())
    chart.curves.push_back({"validation", std::move(validation), 1, Stroke::marked});
  choose_axis(chart);
  return chart;
}

Chart loss_of_many(const std::vector<RunSeries>& runs) {
  Chart chart{.title = title_of(runs, "loss"),
              .x_label = "step",
              .y_label = "loss",
              .curves = {},
              .whole_x = true,
              .y_from_zero = true};
  for (std::size_t k = 0; k < runs.size(); ++k) {
    const std::vector<Point> steps = points_of(runs[k].steps, "loss", false);
    chart.curves.push_back(
        {runs[k].name, steps.empty() ? points_of(runs[k].epochs, "loss", false) : smoothed(steps),
         k, Stroke::plain});
    std::vector<Point> validation = points_of(runs[k].epochs, "validation_loss", false);
    if (!validation.empty())
      chart.curves.push_back(
          {fmt::format("{}, validation", runs[k].name), std::move(validation), k, Stroke::dashed});
  }
  choose_axis(chart);
  return chart;
}

}  // namespace

std::vector<std::string> metrics_of(const std::vector<RunSeries>& runs) {
  std::set<std::string> names;
  for (const RunSeries& run : runs) {
    add_names(run.steps, names);
    add_names(run.epochs, names);
  }
  return {names.begin(), names.end()};
}

Chart plot_runs(const std::vector<RunSeries>& runs, std::string_view metric) {
  const std::string name = short_name(metric);
  const std::vector<std::string> known = metrics_of(runs);
  if (!std::ranges::binary_search(known, name))
    throw TypeError(fmt::format("no run has the metric '{}'{}; there are: {}", metric,
                                did_you_mean(name, known), fmt::join(known, ", ")));
  if (name == "loss") return runs.size() == 1 ? loss_of_one(runs[0]) : loss_of_many(runs);

  const bool over_epochs = std::ranges::none_of(
      runs, [&](const RunSeries& run) { return !points_of(run.steps, name, false).empty(); });
  std::string label = name;
  std::ranges::replace(label, '_', ' ');
  Chart chart{.title = title_of(runs, name),
              .x_label = over_epochs ? "epoch" : "step",
              .y_label = label,
              .curves = {},
              .whole_x = true};
  for (std::size_t k = 0; k < runs.size(); ++k) {
    std::vector<Point> points =
        over_epochs ? points_of(runs[k].epochs, name, true) : points_of(runs[k].steps, name, false);
    if (!points.empty())
      chart.curves.push_back({runs.size() == 1 ? label : runs[k].name, std::move(points), k,
                              over_epochs ? Stroke::marked : Stroke::plain});
  }
  if (is_error(name)) choose_axis(chart);
  return chart;
}

std::vector<std::filesystem::path> write_plots(const std::vector<RunSeries>& runs,
                                               const std::filesystem::path& folder,
                                               std::vector<std::string> metrics) {
  if (metrics.empty())
    for (const std::string name : {"loss", "accuracy", "r2", "perplexity"})
      if (std::ranges::binary_search(metrics_of(runs), name)) metrics.push_back(name);
  std::vector<std::string> drawings;
  for (const std::string& metric : metrics) drawings.push_back(svg(plot_runs(runs, metric)));
  io::check_change(io::make_folders(folder), folder, "make the folder");
  std::vector<std::filesystem::path> files;
  for (std::size_t k = 0; k < metrics.size(); ++k) {
    files.push_back(folder / file_name_of(metrics[k]));
    io::write_file(files.back(), drawings[k]);
  }
  return files;
}

}  // namespace pantala::monitor
