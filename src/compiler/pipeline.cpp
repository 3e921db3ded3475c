// The pipeline, a line per stage:
//
//   canonicalise -> differentiate -> optimizer -> saturate -> schedule -> codegen -> plan
//
// The stage `device` belongs to the session that opens one.
#include "compiler/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "compiler/compile.h"
#include "compiler/plan_data.h"
#include "compiler/plan_key.h"
#include "compiler/stages.h"
#include "ir/graph_data.h"
#include "pantala/error.h"

namespace pantala::compiler {

namespace {

// The place of the rules that recognise decomposed ops; they keep derivatives.
LossGraph canonicalise(LossGraph given) { return given; }

// The place of the e-graph that chooses among equal ways to compute the joint graph.
std::vector<StepGraph> saturate(std::vector<StepGraph> steps) { return steps; }

bool has_output(const Graph& graph, std::string_view name) {
  const auto outputs = graph.outputs();
  return std::ranges::any_of(outputs, [&](const auto& output) { return output.first == name; });
}

std::int64_t count_nodes(const std::vector<StepGraph>& steps) {
  std::int64_t nodes = 0;
  for (const StepGraph& step : steps) nodes += static_cast<std::int64_t>(step.graph.size());
  return nodes;
}

}  // namespace

void check_training_options(const CompileOptions& options) {
  if (options.accumulation_steps < 1)
    throw TypeError(fmt::format("compile: accumulation_steps must be at least 1, got {}",
                                options.accumulation_steps));
}

void check_plain_options(const CompileOptions& options) {
  const auto refuse = [](bool given, std::string_view what) {
    if (given)
      throw TypeError(fmt::format("compile: {} needs a loss; use compile_training_graph", what));
  };
  refuse(options.optimizer.has_value(), "optimizer");
  refuse(options.observe_gradients, "observe_gradients");
  refuse(options.accumulation_steps != 1, "accumulation_steps");
  refuse(options.split_update, "split_update");
}

LossGraph with_observed(const Graph& graph, const Tensor& loss, const CompileOptions& options) {
  LossGraph given{graph, {}};
  const auto here = [&](const Tensor& t, const std::string& what) {
    if (!graph.has(t))
      throw TypeError(fmt::format("compile: {} is not a value of the graph", what));
    return given.graph.value(t.id());
  };
  if (loss.valid()) given.loss = here(loss, "the loss").id();
  for (const auto& [name, value] : options.observe)
    given.graph.output("observe." + name, here(value, fmt::format("the observed '{}'", name)));
  return given;
}

std::vector<StepGraph> training_graphs(const Graph& graph, const Tensor& loss,
                                       const CompileOptions& options, Report& report) {
  check_training_options(options);
  if (!loss.valid()) throw TypeError("compile: the loss is an empty handle");
  Stages stages(report, options.trace);
  const LossGraph given = with_observed(graph, loss, options);
  const LossGraph canonical = stages.run("canonicalise", [&] { return canonicalise(given); });
  const TrainingGraph training =
      stages.run("differentiate", [&] { return differentiate_training(canonical, options); });
  std::vector<StepGraph> steps =
      stages.run("optimizer", [&] { return training_steps(training, options); });
  return stages.run("saturate", [&] { return saturate(std::move(steps)); });
}

std::vector<StepGraph> plain_graphs(const Graph& graph, const CompileOptions& options,
                                    Report& report) {
  check_plain_options(options);
  Stages stages(report, options.trace);
  const LossGraph given = with_observed(graph, {}, options);
  LossGraph canonical = stages.run("canonicalise", [&] { return canonicalise(given); });
  std::vector<StepGraph> steps(1);
  steps[0].graph = std::move(canonical.graph);
  return stages.run("saturate", [&] { return saturate(std::move(steps)); });
}

CompileResult compile_steps(const std::vector<StepGraph>& steps, const Digest& key,
                            const CompileOptions& options, Report report) {
  Options lower = host_options(options.device, options.threads, options.optimize);
  lower.trace = options.trace;
  auto data = std::make_shared<CompiledPlan::Data>();
  data->key = key;
  data->device = options.device;
  data->threads = lower.threads;
  data->non_finite = steps.at(0).guard;
  data->accumulation_steps = options.accumulation_steps;
  data->optimizer = options.optimizer;
  for (const optim::ParameterGroup& group : options.training.groups)
    data->group_patterns.push_back(group.pattern);
  data->has_loss = std::ranges::any_of(
      steps, [](const StepGraph& step) { return has_output(step.graph, "loss"); });
  for (const StepGraph& step : steps) data->steps.push_back(compile(step, lower));
  gather_leaves(*data);

  Report total = combined_report(data->steps);
  report.stages.insert(report.stages.end(), total.stages.begin(), total.stages.end());
  total.stages = std::move(report.stages);
  total.nodes_before = count_nodes(steps);
  total.store_bytes = bytes_in_store(data->leaves);
  return {CompiledPlan(std::move(data)), std::move(total)};
}

}  // namespace pantala::compiler

namespace pantala {

CompileResult compile(const Graph& graph, const CompileOptions& options) {
  Report report;
  const std::vector<compiler::StepGraph> steps = compiler::plain_graphs(graph, options, report);
  return compiler::compile_steps(steps, compiler::plan_key(graph, {}, options), options,
                                 std::move(report));
}

CompileResult compile_training_graph(const Graph& graph, const Tensor& loss,
                                     const CompileOptions& options) {
  Report report;
  const std::vector<compiler::StepGraph> steps =
      compiler::training_graphs(graph, loss, options, report);
  return compiler::compile_steps(steps, compiler::plan_key(graph, loss, options), options,
                                 std::move(report));
}

}  // namespace pantala
