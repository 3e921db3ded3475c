// The result of a run, as result.json has it, and as text for people.
#pragma once

#include <string>
#include <vector>

#include "io/json.h"
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
  std::vector<std::string> plots = {};
};
OrderedJson result_json(const RunConfig& config, const DataFacts& facts, const RunSummary& summary,
                        const std::optional<Evaluation>& evaluation);
std::string result_text(const OrderedJson& result, const std::string& where);
// Whether the run that ended so has nothing left to do for this config.
bool is_finished(const OrderedJson& result, const RunConfig& config, const std::string& where);

}  // namespace pantala::run
