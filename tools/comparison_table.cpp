#include "tools/comparison_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text.h"
#include "monitor/records.h"
#include "tools/inspect/table.h"

namespace pantala::tools {

namespace {

using run::ComparedRun;
using run::Comparison;

std::string config_text(const std::optional<run::ConfigValue>& value) {
  if (!value) return "";
  const auto* text = std::get_if<std::string>(&*value);
  return monitor::printable(text ? *text : run::value_text(*value));
}

std::string number_text(const std::optional<double>& value) {
  return value ? fmt::format("{:.5g}", *value) : "";
}

// Precision and the like say little that these do not; who asks for one of them gets it.
bool is_shown(const std::string& metric, const Comparison& comparison) {
  const std::vector<std::string> hidden = {"top5", "precision", "recall", "f1"};
  return metric == comparison.metric ||
         std::find(hidden.begin(), hidden.end(), metric) == hidden.end();
}

bool all_finished(const Comparison& comparison) {
  return std::all_of(comparison.runs.begin(), comparison.runs.end(),
                     [](const ComparedRun& run) { return run.state == "finished"; });
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + '"';
}

}  // namespace

std::string comparison_text(const Comparison& comparison) {
  std::vector<std::string> shown = comparison.metrics();
  std::erase_if(shown, [&](const std::string& name) { return !is_shown(name, comparison); });
  const bool with_state = !all_finished(comparison);
  std::vector<Column> columns = {{" "}, {"run"}};
  if (with_state) columns.push_back({"state"});
  for (const std::string& key : comparison.keys) columns.push_back({key, true});
  columns.push_back({"steps", true});
  for (const std::string& name : shown) columns.push_back({name, true});
  std::vector<std::vector<std::string>> rows;
  for (std::size_t k = 0; k < comparison.runs.size(); ++k) {
    const ComparedRun& run = comparison.runs[k];
    std::vector<std::string>& row = rows.emplace_back();
    row = {comparison.best == k ? "*" : " ", monitor::printable(run.folder)};
    if (with_state) row.push_back(run.state);
    for (const auto& value : run.values) row.push_back(config_text(value));
    row.push_back(std::to_string(run.steps));
    for (const std::string& name : shown) row.push_back(number_text(run.metric(name)));
  }
  std::string text = table_text(columns, rows);
  if (comparison.best)
    text += fmt::format("* the best by {}: {}\n", comparison.metric,
                        monitor::printable(comparison.runs[*comparison.best].folder));
  return text;
}

std::string comparison_csv(const Comparison& comparison) {
  std::vector<std::string> cells = {"run", "best", "state"};
  cells.insert(cells.end(), comparison.keys.begin(), comparison.keys.end());
  cells.emplace_back("steps");
  const std::vector<std::string> metrics = comparison.metrics();
  cells.insert(cells.end(), metrics.begin(), metrics.end());
  std::string text = fmt::format("{}\n", fmt::join(cells, ","));
  for (std::size_t k = 0; k < comparison.runs.size(); ++k) {
    const ComparedRun& run = comparison.runs[k];
    cells = {csv_field(run.folder), comparison.best == k ? "1" : "0", run.state};
    for (const auto& value : run.values) cells.push_back(csv_field(config_text(value)));
    cells.push_back(std::to_string(run.steps));
    for (const std::string& name : metrics) {
      const std::optional<double> value = run.metric(name);
      cells.push_back(value ? exact(*value) : "");
    }
    text += fmt::format("{}\n", fmt::join(cells, ","));
  }
  return text;
}

}  // namespace pantala::tools
