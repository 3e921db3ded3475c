#include "compiler/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "compiler/assemble.h"
#include "compiler/describe_step.h"
#include "compiler/stages.h"
#include "ir/graph_data.h"
#include "pantala/error.h"
#include "plan/compiled_plan.h"
#include "plan/step_names.h"
#include "schedule/schedule.h"

namespace pantala::compiler {

using plan::CompiledStep;
using schedule::Program;

namespace {

// The graph with the outputs that are wanted.
Graph wanted(const Graph& graph, const std::vector<std::string>& names) {
  if (names.empty()) return graph;
  std::vector<std::pair<std::string, Tensor>> outputs;
  for (const std::string& name : names) {
    if (std::ranges::find(outputs, name, [](const auto& one) { return one.first; }) !=
        outputs.end())
      throw TypeError(fmt::format("the output '{}' is asked for twice", name));
    outputs.emplace_back(name, graph.output(name));
  }
  return graph.with_outputs(outputs);
}

}  // namespace

LossGraph loss_graph(const Compilation& from) {
  LossGraph given{wanted(from.graph, from.options.outputs), {}};
  const auto here = [&](const Tensor& t, const std::string& what) {
    if (!from.graph.has(t))
      throw TypeError(fmt::format("compile: {} is not a value of the graph", what));
    return given.graph.value(t.id());
  };
  if (from.trains()) given.loss = here(from.loss, "the loss").id();
  for (const auto& [name, value] : from.options.observe)
    given.graph.output("observe." + name, here(value, fmt::format("the observed '{}'", name)));
  return given;
}

namespace {

// The place of the rules that recognise decomposed ops; they keep derivatives.
LossGraph canonicalise(LossGraph given) { return given; }

// The place of the e-graph that chooses among equal ways to compute the joint graph.
std::vector<StepGraph> saturate(std::vector<StepGraph> steps) { return steps; }

// Larger than any memory: a slip in a size. Kernels need not reckon with such numbers.
constexpr std::int64_t kMaxValueBytes = std::int64_t{1} << 40;

void check_value_sizes(const Graph& graph) {
  for (const ir::Node& node : graph.data()->nodes())
    for (const Type& type : node.results)
      if (type.shape.numel() > kMaxValueBytes / dtype_bytes(type.dtype))
        throw UnsupportedError(fmt::format(
            "{}{} takes more than {} GiB, the most that a value may have",
            ir::message_prefix(node.op->name, node.where), type.str(), kMaxValueBytes >> 30));
}

Program schedule_step(const Graph& graph, const Options& options, Report& report) {
  const schedule::Machine machine{backend_of(options.device).archetypes(), options.target};
  const Graph lowered = schedule::lower(graph, machine.archetypes);
  report.nodes_after = static_cast<std::int64_t>(lowered.size());
  report.kernels_before = count_ops(lowered);
  Program program = schedule::schedule(
      lowered, machine, {.fuse = options.fuse, .workers = options.threads, .check = [&options] {
                           check_not_cancelled(options.cancelled);
                         }});
  name_kernels(program);
  return program;
}

// The objects of the kernels, in their order.
ProgramCode generate_code(const Program& program, const Options& options, Report& report) {
  const Backend& backend = backend_of(options.device);
  if (backend.generate == nullptr || !options.code) return {};
  codegen::CompiledKernels compiled = backend.generate(
      program.kernels, options.threads, [&] { check_not_cancelled(options.cancelled); });
  if (compiled.units.size() != program.kernels.size())
    throw InternalError(fmt::format("code generation: {} kernels are {} different ones",
                                    program.kernels.size(), compiled.units.size()));
  ProgramCode code{.target = backend.code_target(), .objects = {}};
  for (codegen::CompiledUnit& unit : compiled.units) {
    report.units.push_back({unit.name, unit.milliseconds, std::ssize(unit.object)});
    code.objects.push_back(std::move(unit.object));
  }
  return code;
}

// What the options say about the plan; its steps are to come.
CompiledPlan::Data describe_plan(const std::vector<StepGraph>& steps, const CompileOptions& options,
                                 int threads) {
  const auto has_loss = [](const StepGraph& step) {
    const auto outputs = step.graph.outputs();
    return std::ranges::any_of(
        outputs, [](const auto& output) { return output.first == plan::kLossOutput; });
  };
  CompiledPlan::Data data;
  data.device = options.device;
  data.threads = threads;
  data.non_finite = steps.at(0).guard;
  data.accumulation_steps = options.accumulation_steps;
  data.normalize = options.normalize;
  data.chosen_outputs = !options.outputs.empty();
  data.optimizer = options.optimizer;
  for (const optim::ParameterGroup& group : options.training.groups)
    data.group_patterns.push_back(group.pattern);
  data.has_loss = std::ranges::any_of(steps, has_loss);
  return data;
}

}  // namespace

std::vector<StepGraph> make_step_graphs(const Compilation& given, Report& report) {
  const CompileOptions& options = given.options;
  Stages stages(report, options);
  const LossGraph observed = loss_graph(given);
  LossGraph canonical = stages.run("canonicalise", [&] { return canonicalise(observed); });
  std::vector<StepGraph> steps;
  if (given.trains()) {
    const TrainingGraph training =
        stages.run("differentiate", [&] { return differentiate_training(canonical, options); });
    steps = stages.run("optimizer", [&] { return training_steps(training, options); });
  } else {
    steps.push_back({.graph = std::move(canonical.graph)});
  }
  return stages.run("saturate", [&] { return saturate(std::move(steps)); });
}

CompiledStep compile_step(const StepGraph& step, const Options& options) {
  CompiledStep result;
  result.role = step.role;
  result.gradients = step.gradients;
  Report& report = result.report;
  Stages stages(report, options);
  check_value_sizes(step.graph);
  Program program =
      stages.run("schedule", [&] { return schedule_step(step.graph, options, report); });
  ProgramCode code = stages.run("codegen", [&] { return generate_code(program, options, report); });
  result.plan = stages.run("plan", [&] {
    return assemble(program, std::move(code), {.name = step.role, .gradients = step.gradients});
  });
  result.host = host_part(program);
  result.leaves = describe_leaves(step.graph, result.plan);
  result.messages = std::move(program.messages);
  report_kernels(report, program);
  report.nodes_before = static_cast<std::int64_t>(step.graph.size());
  report.peak_bytes = result.plan.arena_bytes + result.plan.scratch_bytes * options.threads;
  report.store_bytes = plan::bytes_in_store(result.leaves);
  return result;
}

CompileResult run_pipeline(const Compilation& given, const Digest& key) {
  const CompileOptions& options = given.options;
  Report report;
  const std::vector<StepGraph> steps = make_step_graphs(given, report);
  Options lower = host_options(options.device, options.threads, options.optimize);
  lower.trace = options.trace;
  lower.cancelled = options.cancelled;
  CompiledPlan::Data data = describe_plan(steps, options, lower.threads);
  data.key = key;
  for (const StepGraph& step : steps) data.steps.push_back(compile_step(step, lower));
  plan::gather_leaves(data);

  Report total = plan::combined_report(data.steps);
  report.stages.insert(report.stages.end(), total.stages.begin(), total.stages.end());
  total.stages = std::move(report.stages);
  total.store_bytes = plan::bytes_in_store(data.leaves);
  return {CompiledPlan(std::make_shared<const CompiledPlan::Data>(std::move(data))),
          std::move(total)};
}

}  // namespace pantala::compiler
