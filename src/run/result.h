// The result of a run, as result.json has it, and as text for people.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "io/json.h"
#include "pantala/metrics.h"
#include "pantala/trainer.h"
#include "run/core/config.h"
#include "run/core/data_facts.h"
#include "run/parameter_groups.h"

namespace pantala::run {

using io::OrderedJson;

OrderedJson evaluation_json(const Evaluation& evaluation, const DataFacts& facts);
// "accuracy 91.62 %, loss 0.2345 over 10000 items", the confusion matrix and the F1 per class; for
// numbers r2, rmse and mae. ParseError if the object is not one of evaluation_json(); `where` is
// its file.
std::string evaluation_text(const OrderedJson& evaluation, const std::string& where);

struct RunSummary {
  FitEnd end = FitEnd::finished;
  TrainerState state;
  ParameterCounts parameters = {};
  double seconds = 0;
  std::int64_t items = 0;
  std::optional<double> exposed_seconds = {};       // as Progress
  std::optional<std::int64_t> restored_epoch = {};  // as FitResult
  std::string best_checkpoint = {};  // of the best epoch, if it is there; "": the run has none
  std::vector<std::string> plots = {};
};
// The metric of the validation that says which epoch and which checkpoint are the best:
// early_stopping.metric or, without early stopping, checkpoint.metric.
const std::string& best_metric(const RunConfig& config);
// The best epoch of a run that was validated: the one whose weights early stopping has brought
// back, else the best by best_metric().
struct BestEpoch {
  std::int64_t epoch = 0;  // from 0
  std::int64_t steps = 0;  // of the run until its end
  std::string metric;
  double value = 0;
};
std::optional<BestEpoch> best_epoch(const RunConfig& config, const TrainHistory& history,
                                    const std::optional<std::int64_t>& restored_epoch);
OrderedJson result_json(const RunConfig& config, const DataFacts& facts, const RunSummary& summary,
                        const std::optional<Evaluation>& evaluation);
std::string result_text(const OrderedJson& result, const std::string& where);
// Whether the model of the run that ended so has the weights of its best epoch, which the newest
// checkpoint keeps beside its own.
bool has_best_weights(const OrderedJson& result, const RunConfig& config, const std::string& where);
// The checkpoint that this result says to have the weights of the best epoch; "": none, or the
// model has these weights itself.
std::string promised_best(const OrderedJson& result, const RunConfig& config,
                          const std::string& where);
// Whether the run that ended so has nothing left to do for this config.
bool is_finished(const OrderedJson& result, const RunConfig& config, const std::string& where);

}  // namespace pantala::run
