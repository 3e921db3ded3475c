#include "run/result.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "monitor/progress_line.h"
#include "monitor/records.h"
#include "run/models/model.h"
#include "run/setup.h"

namespace pantala::run {

namespace {

// JSON has no other numbers than finite ones; the others are texts.
OrderedJson number(double value) {
  if (std::isfinite(value)) return value;
  return monitor::number_text(value);
}

std::string number_text(const OrderedJson& value) {
  return value.is_string() ? value.get<std::string>() : fmt::format("{:.4f}", value.get<double>());
}

// In units that nobody knows here: as many digits for large and small ones.
std::string measure_text(const OrderedJson& value) {
  return value.is_string() ? value.get<std::string>() : fmt::format("{:.5g}", value.get<double>());
}

std::string percent(const OrderedJson& value) {
  return value.is_string() ? value.get<std::string>()
                           : fmt::format("{:.2f} %", 100 * value.get<double>());
}

std::string with_spaces(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

// Matrices for people: with more classes nobody reads them.
constexpr std::size_t kMostShownClasses = 25;
constexpr const char* kBestWeights = "best";
// With more classes nearly all cells are 0: those that are not are listed.
constexpr std::int64_t kMostDenseClasses = 256;

// Rows of counts, or of very many classes the list of [truth, predicted, count].
void put_confusion(OrderedJson& json, const metrics::ConfusionMatrix& matrix) {
  const bool dense = matrix.classes() <= kMostDenseClasses;
  OrderedJson cells = OrderedJson::array(), undecided = OrderedJson::array();
  if (dense) {
    const std::vector<std::int64_t> row(static_cast<std::size_t>(matrix.classes()));
    cells = std::vector(row.size(), row);
  }
  for (const auto& [truth, predicted, count] : matrix.cells()) {
    if (dense)
      cells[static_cast<std::size_t>(truth)][static_cast<std::size_t>(predicted)] = count;
    else
      cells.push_back({truth, predicted, count});
  }
  for (std::int64_t truth = 0; truth < matrix.classes(); ++truth)
    if (matrix.undecided(truth) > 0) undecided.push_back({truth, matrix.undecided(truth)});
  json[dense ? "confusion" : "confusion_cells"] = std::move(cells);
  if (!undecided.empty()) json["undecided"] = std::move(undecided);
}

metrics::ConfusionMatrix confusion_of(const OrderedJson& evaluation) {
  const OrderedJson& rows = evaluation.at("confusion");
  const auto classes = static_cast<std::int64_t>(rows.size());
  metrics::ConfusionMatrix matrix(classes);
  for (std::int64_t truth = 0; truth < classes; ++truth) {
    const auto row = rows.at(static_cast<std::size_t>(truth)).get<std::vector<std::int64_t>>();
    for (std::size_t k = 0; k < row.size(); ++k)
      matrix.add(truth, static_cast<std::int64_t>(k), row[k]);
  }
  if (evaluation.contains("undecided"))
    for (const OrderedJson& entry : evaluation.at("undecided"))
      matrix.add_undecided(entry.at(0).get<std::int64_t>(), entry.at(1).get<std::int64_t>());
  return matrix;
}

// Where some were frozen. (Results of earlier versions do not say.)
std::string trained_share(const OrderedJson& result) {
  const std::int64_t all = result.at("parameters").get<std::int64_t>(),
                     trained = result.value("trained_parameters", all);
  if (trained == all) return "";
  return fmt::format("{} of {} parameters were trained, the others frozen\n", trained, all);
}

}  // namespace

OrderedJson evaluation_json(const Evaluation& evaluation, const DataFacts& facts) {
  OrderedJson json{{"items", evaluation.items}, {"loss", number(evaluation.loss)}};
  for (const auto& [name, value] : evaluation.values) json[name] = number(value);
  if (!facts.names.empty()) json["classes"] = facts.names;
  if (evaluation.confusion) put_confusion(json, *evaluation.confusion);
  return json;
}

std::string evaluation_text(const OrderedJson& evaluation, const std::string& where) {
  return io::extract(where, [&] {
    std::string text;
    for (const char* name : {"bits_per_byte", "bits_per_token"})
      if (evaluation.contains(name))
        text += fmt::format("{} {}, ", with_spaces(name), number_text(evaluation.at(name)));
    if (evaluation.contains("accuracy"))
      text += fmt::format("accuracy {}, ", percent(evaluation.at("accuracy")));
    if (evaluation.contains("r2"))
      text += fmt::format("r2 {}, rmse {}, mae {} (in the units of the labels), ",
                          number_text(evaluation.at("r2")), measure_text(evaluation.at("rmse")),
                          measure_text(evaluation.at("mae")));
    if (evaluation.contains("perplexity"))
      text += fmt::format("perplexity {}, ", measure_text(evaluation.at("perplexity")));
    text += fmt::format("loss {} over {}\n", number_text(evaluation.at("loss")),
                        counted(evaluation.at("items").get<std::size_t>(), "item"));
    for (const char* name : {"top5", "precision", "recall", "f1"})
      if (evaluation.contains(name))
        text += fmt::format("{:<10} {}\n", name, percent(evaluation.at(name)));
    if (!evaluation.contains("confusion")) return text;
    std::vector<std::string> names;
    if (evaluation.contains("classes"))
      for (const std::string name : evaluation.at("classes"))
        names.push_back(monitor::printable(name));
    if (evaluation.at("confusion").size() <= kMostShownClasses)
      text.append(1, '\n').append(confusion_of(evaluation).text(names));
    return text;
  });
}

const std::string& best_metric(const RunConfig& config) {
  return config.early_stopping.patience > 0 ? config.early_stopping.metric
                                            : config.checkpoint.metric;
}

std::optional<BestEpoch> best_epoch(const RunConfig& config, const TrainHistory& history,
                                    const std::optional<std::int64_t>& restored_epoch) {
  const std::string& metric = best_metric(config);
  std::optional<BestEpoch> best;
  std::int64_t steps = 0;
  for (std::size_t k = 0; k < history.epochs.size(); ++k) {
    steps += history.epochs[k].steps;
    const auto epoch = static_cast<std::int64_t>(k);
    const std::optional<Evaluation>& evaluation = history.evaluations[k];
    if (!evaluation || (restored_epoch && *restored_epoch != epoch)) continue;
    const double value = evaluation->value(metric);
    if (std::isnan(value)) continue;
    const bool better =
        !best || (metrics::larger_is_better(metric) ? value > best->value : value < best->value);
    if (better) best = {.epoch = epoch, .steps = steps, .metric = metric, .value = value};
  }
  return best;
}

OrderedJson result_json(const RunConfig& config, const DataFacts& facts, const RunSummary& summary,
                        const std::optional<Evaluation>& evaluation) {
  const TrainerState& state = summary.state;
  OrderedJson json{{"end", summary.end == FitEnd::stopped_early ? "stopped_early" : "finished"},
                   {"folder", config.output.folder},
                   {"model", model_title(config)},
                   {"task", task_name(facts.task())},
                   {"data", config.data.source},
                   {"device", device_line(config)},
                   {"parameters", summary.parameters.all},
                   {"trained_parameters", summary.parameters.trained()},
                   {"epochs", config.epochs},
                   {"max_steps", config.max_steps},
                   {"steps", state.global_steps},
                   {"skipped", state.skipped}};
  if (const std::optional<double> loss = state.history.final_loss())
    json["train_loss"] = number(*loss);
  if (const auto best = best_epoch(config, state.history, summary.restored_epoch)) {
    json["epochs_done"] = state.history.epochs.size();
    json["best_epoch"] = best->epoch + 1;
    json["best_metric"] = best->metric;
    json["best_value"] = number(best->value);
    if (!summary.best_checkpoint.empty()) json["best_checkpoint"] = summary.best_checkpoint;
  }
  json["weights"] = summary.restored_epoch ? kBestWeights : "last";
  if (evaluation) json["evaluation"] = evaluation_json(*evaluation, facts);
  json["seconds"] = summary.seconds;
  json["items_per_second"] =
      summary.seconds > 0 ? static_cast<double>(summary.items) / summary.seconds : 0.0;
  if (summary.exposed_seconds) json["exposed_seconds"] = *summary.exposed_seconds;
  json["plots"] = summary.plots;
  return json;
}

namespace {

// Which epoch was the best, if that was not the last, and whose weights the model has.
std::string best_text(const OrderedJson& result) {
  const bool stopped = result.at("end").get<std::string>() == "stopped_early";
  const std::string begin = stopped ? "stopped early; " : "";
  if (!result.contains("best_epoch")) return stopped ? "stopped early\n" : "";
  const auto epoch = result.at("best_epoch").get<std::int64_t>();
  if (!result.contains("weights"))  // of an older version
    return fmt::format("{}the best epoch was {}\n", begin, epoch);
  if (epoch == result.at("epochs_done").get<std::int64_t>())
    return stopped ? "stopped early\n" : "";
  std::string text = fmt::format("{}the best epoch was {} of {} (validation {} {}); the model has ",
                                 begin, epoch, result.at("epochs_done").get<std::int64_t>(),
                                 result.at("best_metric").get<std::string>(),
                                 measure_text(result.at("best_value")));
  if (result.at("weights") == kBestWeights) return text + "its weights\n";
  text += "the weights of the last one";
  if (result.contains("best_checkpoint"))
    text += fmt::format(", those of the best are in {} (--checkpoint best)",
                        result.at("best_checkpoint").get<std::string>());
  return text + "\n";
}

}  // namespace

std::string result_text(const OrderedJson& result, const std::string& where) {
  std::string text;
  if (result.contains("evaluation")) text += evaluation_text(result.at("evaluation"), where) + "\n";
  return text + io::extract(where, [&] {
           std::string rest = best_text(result);
           if (result.contains("train_loss"))
             rest += fmt::format("training loss {} in the last epoch\n",
                                 number_text(result.at("train_loss")));
           if (const std::int64_t skipped = result.at("skipped"); skipped > 0)
             rest += fmt::format("left out, because numbers were not finite: {}\n",
                                 counted(static_cast<std::size_t>(skipped), "step"));
           rest += trained_share(result);
           rest += fmt::format("{} in {} of training, {} items a second\n",
                               counted(result.at("steps").get<std::size_t>(), "step"),
                               monitor::duration_text(result.at("seconds").get<double>()),
                               monitor::rate_text(result.at("items_per_second").get<double>()));
           if (const double seconds = result.at("seconds"); result.contains("exposed_seconds"))
             rest += fmt::format(
                 "{:.1f} % of it rank 0 has waited for gradients of other ranks\n",
                 seconds > 0 ? 100 * result.at("exposed_seconds").get<double>() / seconds : 0.0);
           rest += monitor::printable(result.at("device").get<std::string>()) + "\n";
           rest += fmt::format("run folder: {}\n",
                               monitor::printable(result.at("folder").get<std::string>()));
           for (const std::string plot : result.at("plots"))
             rest += fmt::format("plot: {}\n", monitor::printable(plot));
           return rest;
         });
}

bool has_best_weights(const OrderedJson& result, const RunConfig& config,
                      const std::string& where) {
  return io::extract(where, [&] {
    if (result.contains("weights")) return result.at("weights") == kBestWeights;
    return config.early_stopping.restore_best &&  // of an older version
           result.at("end").get<std::string>() == "stopped_early";
  });
}

std::string promised_best(const OrderedJson& result, const RunConfig& config,
                          const std::string& where) {
  if (has_best_weights(result, config, where)) return "";
  return io::extract(where, [&] { return result.value("best_checkpoint", std::string()); });
}

bool is_finished(const OrderedJson& result, const RunConfig& config, const std::string& where) {
  return io::extract(where, [&] {
    if (result.at("end").get<std::string>() == "stopped_early") return true;
    if (config.max_steps > 0 && result.at("steps").get<std::int64_t>() >= config.max_steps)
      return true;
    const bool was_limited = result.at("max_steps").get<std::int64_t>() > 0;
    return (!was_limited || config.max_steps == result.at("max_steps").get<std::int64_t>()) &&
           config.epochs <= result.at("epochs").get<std::int64_t>();
  });
}

}  // namespace pantala::run
