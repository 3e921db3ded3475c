// Which rules are of use: every rule fires in the step of some workload or in some recorded ONNX
// model, or is known to be for graphs that somebody wrote by hand. Only lowering and saturation
// run.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "compiler/pipeline.h"
#include "pantala/onnx.h"
#include "pantala/ops.h"
#include "recorded_models.h"
#include "rewrite/rules/rules.h"
#include "rewrite/saturation.h"
#include "schedule/cpu/archetypes.h"
#include "schedule/schedule.h"
#include "tools/bench/workloads.h"

namespace pantala::tests::fired_rules_test {
namespace {

// Identities that neither our models nor exporters leave in a graph, but a person may write. A rule
// that comes here must be one of those, and one that fires after all is taken out.
const std::vector<std::string> kForGraphsByHand = {"add-negative-zero", "choice-of-same",
                                                   "divide-by-one",     "negate-twice",
                                                   "one-times",         "subtract-zero"};

// Other forms of what is recognised: operands the other way round, other masks, ops that none of
// the recorded models has. As above.
const std::vector<std::string> kForOtherGraphs = {"attention-chosen",
                                                  "attention-filled",
                                                  "attention-mask-first",
                                                  "attention-of-one-head",
                                                  "attention-of-one-head-masked",
                                                  "batch-norm",
                                                  "batch-norm-bias",
                                                  "batch-norm-weight",
                                                  "bias-first-of-reshaped-rows",
                                                  "broadcast-of-broadcast",
                                                  "broadcast-to-same",
                                                  "cast-there-and-back",
                                                  "cast-to-same",
                                                  "cross-entropy",
                                                  "evaluated-batch-norm",
                                                  "evaluated-batch-norm-bias",
                                                  "evaluated-batch-norm-weight",
                                                  "gelu-half-inside-reversed",
                                                  "gelu-of-half",
                                                  "gelu-of-half-reversed",
                                                  "gelu-reversed",
                                                  "gelu-tanh",
                                                  "gelu-tanh-half-inside",
                                                  "gelu-tanh-half-inside-reversed",
                                                  "gelu-tanh-of-half-reversed",
                                                  "gelu-tanh-reversed",
                                                  "group-norm",
                                                  "group-norm-bias",
                                                  "group-norm-weight",
                                                  "guarded-attention",
                                                  "guarded-attention-chosen",
                                                  "guarded-attention-filled",
                                                  "guarded-attention-mask-first",
                                                  "layer-norm-bias-first",
                                                  "layer-norm-weight-first",
                                                  "log-of-softmax",
                                                  "log-softmax",
                                                  "log-softmax-of-shifted",
                                                  "mask-of-nothing",
                                                  "number-of-permute",
                                                  "number-of-reshape",
                                                  "number-of-slice",
                                                  "number-plus",
                                                  "permute-of-ones",
                                                  "permute-to-same",
                                                  "power-half",
                                                  "power-minus-half",
                                                  "power-two",
                                                  "product-of-permuted-left",
                                                  "rms-norm-reversed",
                                                  "scale-of-scaled",
                                                  "silu-reversed",
                                                  "slice-of-concatenated",
                                                  "slice-of-slice",
                                                  "softmax",
                                                  "softmax-of-shifted"};

// How often each rule said something new, and where it did first.
struct Fired {
  std::int64_t count = 0;
  std::string first = "nowhere";
};

class Tally {
 public:
  Tally() {
    for (const rewrite::Rule& rule : rewrite::all_rules()) fired_[rule.name];
  }
  // Of an empty loss the graph as it is.
  void compile(const std::string& name, const Graph& graph, const Tensor& loss,
               const CompileOptions& options) {
    Report report;
    const auto steps = compiler::make_step_graphs(
        loss.valid() ? compiler::Compilation::training(graph, loss, options)
                     : compiler::Compilation::plain(graph, options),
        report);
    for (const Report::Rule& rule : report.rules) count(name, rule.name, rule.count);
    const rewrite::Saturation all(schedule::lower(steps.at(0).graph, schedule::cpu::archetypes()),
                                  rewrite::step_rules());
    EXPECT_EQ(all.run().stop_reason, egraph::StopReason::saturated) << name;
    for (std::size_t k = 0; k < all.rules().size(); ++k)
      count(name, all.rules()[k].name, static_cast<std::int64_t>(all.run().rules[k].fired));
  }
  const std::map<std::string, Fired>& fired() const { return fired_; }

 private:
  void count(const std::string& where, const std::string& rule, std::int64_t times) {
    Fired& fired = fired_.at(rule);
    if (fired.count == 0 && times > 0) fired.first = where;
    fired.count += times;
  }

  std::map<std::string, Fired> fired_;
};

void saturate_workloads(Tally& tally) {
  for (const std::string& name : tools::workload_names()) {
    const tools::Workload training = tools::make_workload(name, tools::BenchMode::train);
    tally.compile(name, training.graph, training.loss,
                  {.non_finite = NonFiniteGuard::gradients, .optimizer = training.optimizer});
    const tools::Workload inference = tools::make_workload(name, tools::BenchMode::infer);
    tally.compile(name + ", inference", inference.graph, {}, {});
  }
}

// As it is, and trained by the squares of its first output.
void saturate_recorded(const std::string& name, Tally& tally) {
  const RecordedModel recorded = recorded_model(name);
  const onnx::Model model = onnx::import_model(recorded.file, recorded.name);
  tally.compile("onnx " + name, model.graph, {}, {});
  onnx::Model trained = onnx::import_model(recorded.file, recorded.name, {.training = true});
  const Tensor output = trained.graph.outputs().at(0).second;
  tally.compile("onnx " + name + ", training", trained.graph, mean(output * output),
                {.optimizer = optim::adam()});
}

TEST(FiredRules, every_rule_fires_somewhere_or_is_known_to_be_for_graphs_by_hand) {
  Tally tally;
  saturate_workloads(tally);
  for (const std::string& name : recorded_models()) saturate_recorded(name, tally);
  std::vector<std::string> nowhere;
  for (const auto& [name, fired] : tally.fired()) {
    fmt::print("{:32} {:7} times, first in {}\n", name, fired.count, fired.first);
    if (fired.count == 0) nowhere.push_back(name);
  }
  const std::string list = fmt::format("{}", fmt::join(nowhere, ", "));
  fmt::print("rules that fire in no workload and no ONNX fixture: {}\n", list);
  RecordProperty("rules_that_fire_nowhere", list);
  std::vector<std::string> known = kForGraphsByHand;
  known.insert(known.end(), kForOtherGraphs.begin(), kForOtherGraphs.end());
  EXPECT_THAT(nowhere, ::testing::UnorderedElementsAreArray(known));
}

}  // namespace
}  // namespace pantala::tests::fired_rules_test
