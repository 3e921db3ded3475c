#include "run/comparison.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <system_error>

#include "base/text.h"
#include "monitor/records.h"
#include "monitor/run_series.h"
#include "pantala/error.h"
#include "pantala/metrics.h"
#include "run/run_folder.h"

namespace pantala::run {

namespace {

namespace fs = std::filesystem;
using io::OrderedJson;

constexpr const char* kTrainLoss = "train_loss";

// As result.json has numbers: those that JSON lacks are texts.
std::optional<double> number_of(const OrderedJson& value) {
  if (value.is_number()) return value.get<double>();
  if (!value.is_string()) return {};
  const std::string text = value.get<std::string>();
  for (const double special : {std::nan(""), HUGE_VAL, -HUGE_VAL})
    if (text == exact(special)) return special;
  return {};
}

void put(ComparedRun& run, const std::string& name, std::optional<double> value) {
  if (value) run.metrics.emplace_back(name, *value);
}

void read_result(const RunFolder& folder, ComparedRun& run) {
  const std::string name = folder.result_file().string();
  const auto result = io::read_json<OrderedJson>(folder.result_file());
  io::extract(name, [&] {
    run.state =
        result.at("end").get<std::string>() == "stopped_early" ? "stopped early" : "finished";
    run.steps = result.at("steps").get<std::int64_t>();
    if (result.contains(kTrainLoss)) put(run, kTrainLoss, number_of(result.at(kTrainLoss)));
    if (!result.contains("evaluation")) return;
    const OrderedJson& evaluation = result.at("evaluation");
    for (const std::string& metric : metrics::names())
      if (evaluation.contains(metric)) put(run, metric, number_of(evaluation.at(metric)));
  });
}

// What an unfinished run has logged.
void read_log(const RunFolder& folder, ComparedRun& run) {
  std::error_code error;
  run.state = fs::exists(folder.diverged(), error) ? "diverged" : "unfinished";
  monitor::RunSeries series;
  try {
    series = monitor::read_run(folder.root());
  } catch (const IoError&) { return; }  // nothing yet
  if (!series.steps.empty()) run.steps = series.steps.back().global_step;
  if (series.epochs.empty()) return;
  const monitor::EpochRecord& last = series.epochs.back();
  run.steps = std::max(run.steps, last.global_step);
  put(run, kTrainLoss, last.avg_loss);
  put(run, "loss", last.validation_loss);
  for (const auto& [name, value] : last.metrics) put(run, name, value);
}

using Values = std::map<std::string, ConfigValue>;  // by key

std::optional<ConfigValue> value_in(const Values& values, const std::string& key) {
  const auto found = values.find(key);
  return found == values.end() ? std::optional<ConfigValue>{} : found->second;
}

// The keys that have not the same value everywhere, in the order of the configs.
std::vector<std::string> different_keys(const std::vector<RunConfig>& configs,
                                        std::vector<Values>& values) {
  std::vector<std::string> order;
  for (const RunConfig& config : configs) {
    Values& own = values.emplace_back();
    for (const Assignment& one : values_of(config)) {
      if (changes_nothing(one.key)) continue;
      own[one.key] = one.value;
      if (std::find(order.begin(), order.end(), one.key) == order.end()) order.push_back(one.key);
    }
  }
  std::erase_if(order, [&](const std::string& key) {
    return std::all_of(values.begin(), values.end(), [&](const Values& one) {
      return value_in(one, key) == value_in(values[0], key);
    });
  });
  return order;
}

std::string usual_metric(const Comparison& comparison, const std::vector<RunConfig>& configs) {
  std::string metric = configs.at(0).checkpoint.metric;
  for (const RunConfig& config : configs)
    if (config.checkpoint.metric != metric) metric = "loss";
  const std::vector<std::string> known = comparison.metrics();
  const bool is_there = std::find(known.begin(), known.end(), metric) != known.end();
  return is_there ? metric : kTrainLoss;
}

// Of a run that did not reach its end the last numbers say little.
bool can_be_best(const ComparedRun& run) {
  return run.state != "diverged" && run.state != "failed";
}

void choose_best(Comparison& comparison) {
  const bool larger = metrics::larger_is_better(comparison.metric);
  for (std::size_t k = 0; k < comparison.runs.size(); ++k) {
    const std::optional<double> value = comparison.runs[k].metric(comparison.metric);
    if (!value || !std::isfinite(*value) || !can_be_best(comparison.runs[k])) continue;
    if (comparison.best) {
      const double best = *comparison.runs[*comparison.best].metric(comparison.metric);
      if (larger ? *value <= best : *value >= best) continue;
    }
    comparison.best = k;
  }
}

}  // namespace

std::optional<double> ComparedRun::metric(std::string_view name) const {
  for (const auto& [known, value] : metrics)
    if (known == name) return value;
  return {};
}

std::vector<std::string> Comparison::metrics() const {
  std::vector<std::string> order = {kTrainLoss}, found;
  for (const std::string& name : metrics::names()) order.push_back(name);
  for (const std::string& name : order)
    if (std::any_of(runs.begin(), runs.end(),
                    [&](const ComparedRun& run) { return run.metric(name).has_value(); }))
      found.push_back(name);
  return found;
}

Comparison compare_runs(const std::vector<std::string>& folders, const std::string& metric,
                        const std::map<std::string, RunConfig>& failed) {
  if (folders.empty()) throw TypeError("there is no run to compare");
  Comparison comparison;
  std::vector<RunConfig> configs;
  for (const std::string& path : folders) {
    ComparedRun& run = comparison.runs.emplace_back();
    run.folder = path;
    if (const auto found = failed.find(path); found != failed.end()) {
      configs.push_back(found->second);
      read_log(RunFolder(path), run);
      run.state = "failed";
      continue;
    }
    const RunFolder folder = open_run_folder(path);
    configs.push_back(folder.config());
    std::error_code error;
    if (fs::exists(folder.result_file(), error))
      read_result(folder, run);
    else
      read_log(folder, run);
  }
  std::vector<Values> values;
  comparison.keys = different_keys(configs, values);
  for (std::size_t k = 0; k < values.size(); ++k)
    for (const std::string& key : comparison.keys)
      comparison.runs[k].values.push_back(value_in(values[k], key));
  const std::vector<std::string> known = comparison.metrics();
  comparison.metric = metric.empty() ? usual_metric(comparison, configs) : metric;
  if (!metric.empty() && std::find(known.begin(), known.end(), metric) == known.end())
    throw TypeError(fmt::format("no run has the metric '{}'{}; there are: {}", metric,
                                did_you_mean(metric, known), fmt::join(known, ", ")));
  choose_best(comparison);
  return comparison;
}

OrderedJson comparison_json(const Comparison& comparison) {
  OrderedJson runs = OrderedJson::array();
  for (const ComparedRun& run : comparison.runs) {
    OrderedJson config = OrderedJson::object(), numbers = OrderedJson::object();
    for (std::size_t k = 0; k < comparison.keys.size(); ++k) {
      OrderedJson& place = config[comparison.keys[k]];
      if (run.values[k]) std::visit([&](const auto& value) { place = value; }, *run.values[k]);
    }
    for (const auto& [name, value] : run.metrics)
      numbers[name] = std::isfinite(value) ? OrderedJson(value) : OrderedJson(exact(value));
    runs.push_back({{"run", monitor::printable(run.folder)},
                    {"state", run.state},
                    {"steps", run.steps},
                    {"config", config},
                    {"metrics", numbers}});
  }
  OrderedJson json{{"metric", comparison.metric}, {"keys", comparison.keys}, {"runs", runs}};
  json["best"] = comparison.best
                     ? OrderedJson(monitor::printable(comparison.runs[*comparison.best].folder))
                     : OrderedJson(nullptr);
  return json;
}

}  // namespace pantala::run
