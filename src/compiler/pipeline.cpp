#include "compiler/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "compiler/assemble.h"
#include "compiler/canonicalise.h"
#include "compiler/describe_step.h"
#include "compiler/predictions.h"
#include "compiler/stages.h"
#include "ir/graph_data.h"
#include "pantala/error.h"
#include "plan/compiled_plan.h"
#include "plan/step_names.h"
#include "schedule/estimate.h"
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

void report_search(const search::Outcome& found, Report& report) {
  for (const search::RuleUse& use : found.rules)
    report.rules.push_back({use.name, use.matches, use.fired, use.reached, use.milliseconds});
  for (std::size_t k = 0; k < found.candidates.size(); ++k) {
    const search::Candidate& one = found.candidates[k];
    report.candidates.push_back({one.name, k == found.chosen, one.microseconds, one.flops,
                                 one.bytes, one.nodes, one.launches, one.peak_bytes});
  }
  for (const search::Recomputed& one : found.recomputed)
    report.recomputed.push_back({one.values, one.count, one.bytes});
  for (const search::Recomputed& one : found.stored)
    report.stored.push_back({one.values, one.count, one.bytes});
  report.by_planes = found.by_planes;
  report.egraph_nodes = found.nodes;
  report.egraph_classes = found.classes;
  report.egraph_rounds = found.rounds;
  report.stop_reason = found.stop_reason;
}

}  // namespace

namespace {

// An update by itself keeps the bits of its ops: what is worth it depends on all parameters that
// are updated together, and each must come out the same wherever it is updated.
rewrite::Promise promise_for(const StepGraph& step, const Options& options) {
  return step.role == plan::kApply ? rewrite::Promise::order : options.promise;
}

}  // namespace

namespace {

// The commands of a GPU are recorded once, with all launches: nothing of them can be left out.
bool prepares(const Options& options) { return options.prepares && !options.target.has_groups(); }

}  // namespace

search::Outcome search_step(const StepGraph& step, const Options& options) {
  const schedule::ArchetypeTable& archetypes =
      backend_of(options.device).archetypes(options.code_for());
  std::optional<Graph> written;
  if (step.written) written = schedule::lower(*step.written, archetypes);
  return search::search(schedule::lower(step.graph, archetypes),
                        {.level = options.level,
                         .promise = promise_for(step, options),
                         .off = options.rules_off,
                         .greedy_order = options.greedy_order,
                         .memory_limit = options.memory_limit,
                         .prepares = prepares(options),
                         .written = written ? &*written : nullptr,
                         .stays_finite = step.stays_finite,
                         .archetypes = archetypes,
                         .table = cost_table(options),
                         .check = [&options] { check_not_cancelled(options.cancelled); }});
}

Graph choose_graph(const StepGraph& step, const Options& options, Report& report) {
  if (options.level == search::Level::none && options.memory_limit == 0)
    return schedule::lower(step.as_written(),
                           backend_of(options.device).archetypes(options.code_for()));
  search::Outcome found = search_step(step, options);
  report_search(found, report);
  return std::move(found.graph);
}

ScheduleSetting schedule_setting(const Options& options) {
  return {{backend_of(options.device).archetypes(options.code_for()), options.target},
          {.fuse = options.fuse,
           .workers = options.threads,
           .prepares = prepares(options),
           .check = [&options] { check_not_cancelled(options.cancelled); }}};
}

namespace {

Program schedule_step(const Graph& lowered, const Options& options, Report& report) {
  const auto [machine, how] = schedule_setting(options);
  report.nodes_after = static_cast<std::int64_t>(lowered.size());
  report.kernels_before = count_ops(lowered);
  schedule::Decisions decisions = schedule::decide(lowered, machine, how);
  const schedule::CostTable& table = cost_table(options);
  const schedule::Estimate estimate = schedule::estimate(decisions, machine.archetypes, table);
  Program program = schedule::build(std::move(decisions), machine, how);
  const std::vector<schedule::KernelCost> costs = launch_costs(estimate, program.launches);
  for (std::size_t k = 0; k < costs.size(); ++k)
    program.launches[k].predicted_us = costs[k].microseconds;
  report.predicted_us = estimate.microseconds;
  report.cost_table = table.name;
  name_kernels(program);
  return program;
}

// The objects of the kernels, in their order.
ProgramCode generate_code(const Program& program, const Options& options, Report& report) {
  const Backend& backend = backend_of(options.device);
  if (backend.generate == nullptr || !options.code) return {};
  codegen::CompiledKernels compiled =
      backend.generate(options.code_for(), program.kernels, options.threads,
                       [&] { check_not_cancelled(options.cancelled); });
  if (compiled.units.size() != program.kernels.size())
    throw InternalError(fmt::format("code generation: {} kernels are {} different ones",
                                    program.kernels.size(), compiled.units.size()));
  ProgramCode code{.target = backend.code_target(options.code_for()), .objects = {}};
  for (codegen::CompiledUnit& unit : compiled.units) {
    report.units.push_back({unit.name, unit.milliseconds, std::ssize(unit.object)});
    code.objects.push_back(std::move(unit.object));
  }
  return code;
}

// What the options say about the plan; its steps are to come.
CompiledPlan::Data describe_plan(const std::vector<StepGraph>& steps, const CompileOptions& options,
                                 const Options& lower) {
  const auto has_loss = [](const StepGraph& step) {
    const auto outputs = step.graph.outputs();
    return std::ranges::any_of(
        outputs, [](const auto& output) { return output.first == plan::kLossOutput; });
  };
  CompiledPlan::Data data;
  data.device = lower.device;
  data.threads = lower.threads;
  data.non_finite = steps.back().guard;
  data.accumulation_steps = options.accumulation_steps;
  data.normalize = options.normalize;
  data.chosen_outputs = !options.outputs.empty();
  data.optimizer = options.optimizer;
  for (const optim::ParameterGroup& group : options.training.groups)
    data.group_patterns.push_back(group.pattern);
  data.cost_table = schedule::to_text(cost_table(lower));
  data.has_loss = std::ranges::any_of(steps, has_loss);
  return data;
}

}  // namespace

std::vector<schedule::GroupNodes> kernel_nodes(const Graph& chosen, const Options& options) {
  const auto [machine, how] = schedule_setting(options);
  return schedule::nodes_of(schedule::decide(chosen, machine, how), machine, how);
}

namespace {

// The steps of each of the forms of one graph.
std::vector<std::vector<StepGraph>> steps_of(const std::vector<LossGraph>& forms,
                                             const Compilation& given, Stages& stages) {
  std::vector<std::vector<StepGraph>> steps(forms.size());
  if (!given.trains()) {
    for (std::size_t k = 0; k < forms.size(); ++k) steps[k].push_back({.graph = forms[k].graph});
    return steps;
  }
  const CompileOptions& options = given.options;
  const auto training = stages.run("differentiate", [&] {
    std::vector<TrainingGraph> all;
    for (const LossGraph& form : forms) all.push_back(differentiate_training(form, options));
    return all;
  });
  return stages.run("optimizer", [&] {
    for (std::size_t k = 0; k < forms.size(); ++k) steps[k] = training_steps(training[k], options);
    return std::move(steps);
  });
}

}  // namespace

std::vector<StepGraph> make_step_graphs(const Compilation& given, Report& report) {
  Stages stages(report, given.options);
  const LossGraph written = loss_graph(given);
  const CanonicalGraph canonical = stages.run("canonicalise", [&] {
    return canonicalise(written, given.trains(), host_options(given.options), report);
  });
  std::vector<LossGraph> forms{canonical};
  if (canonical.is_other) forms.push_back(written);
  std::vector<std::vector<StepGraph>> steps = steps_of(forms, given, stages);
  // The user's graph is in the first: `apply` works on gradients alone.
  if (canonical.is_other) {
    steps[0][0].written = std::move(steps[1][0].graph);
    steps[0][0].stays_finite = canonical.stays_finite;
  }
  return std::move(steps[0]);
}

namespace {

std::int64_t peak_of(const plan::Plan& plan, const Options& options) {
  return plan.arena_bytes + plan.scratch_bytes * options.threads;
}

// The kernels of a step. The search knows what temporaries take at least; the arena may have gaps,
// and scratch comes on top: with a limit nothing is kept from run to run unless there is room for
// it, and the search is told to take less until all of it fits.
class StepProgram {
 public:
  StepProgram(const StepGraph& step, const Options& options, Report& report, Stages& stages)
      : step_(step), options_(options), report_(report), stages_(stages) {}

  Program make() {
    std::int64_t temporaries = options_.memory_limit;
    for (int tries = 0; tries < kMostTries; ++tries) {
      Report report = report_;
      Program program = make(temporaries, report);
      const std::int64_t excess = excess_of(program);
      if (excess > 0 && program.preparation > 0) {
        options_.prepares = false;
        continue;
      }
      if (excess > 0 && temporaries > excess && tries + 1 < kMostTries) {
        temporaries -= excess;
        continue;
      }
      if (excess > 0) refuse();
      report.stages = report_.stages;
      report_ = std::move(report);
      return program;
    }
    throw InternalError("compile: no program was made");
  }

 private:
  static constexpr int kMostTries = 5;

  Program make(std::int64_t temporaries, Report& report) {
    Options options = options_;
    options.memory_limit = temporaries;
    const Graph chosen =
        stages_.run("saturate", [&] { return choose_graph(step_, options, report); });
    return stages_.run("schedule", [&] { return schedule_step(chosen, options_, report); });
  }

  // How much more than the limit it takes.
  std::int64_t excess_of(const Program& program) {
    if (options_.memory_limit == 0) return 0;
    const plan::Plan plan = stages_.run("plan", [&] { return assemble(program, {}, {}); });
    const std::int64_t peak = peak_of(plan, options_) + plan::prepared_bytes(plan);
    smallest_ = std::min(smallest_, peak);
    return peak - options_.memory_limit;
  }

  [[noreturn]] void refuse() const {
    throw UnsupportedError(fmt::format(
        "the memory limit of {} bytes is too small: with all computed again that can be, "
        "temporaries and scratch of '{}' take {} bytes",
        options_.memory_limit, step_.role, smallest_));
  }

  const StepGraph& step_;
  Options options_;
  Report& report_;
  Stages& stages_;
  std::int64_t smallest_ = INT64_MAX;
};

CompiledStep finished_step(const StepGraph& step, Program program, const Options& options,
                           Report& report, Stages& stages) {
  CompiledStep result;
  result.role = step.role;
  result.gradients = step.gradients;
  ProgramCode code = stages.run("codegen", [&] { return generate_code(program, options, report); });
  result.plan = stages.run("plan", [&] {
    return assemble(program, std::move(code), {.name = step.role, .gradients = step.gradients});
  });
  result.host = host_part(program);
  result.leaves = describe_leaves(step.graph, result.plan);
  result.messages = std::move(program.messages);
  report_kernels(report, program);
  report.nodes_before = static_cast<std::int64_t>(step.as_written().size());
  report.peak_bytes = peak_of(result.plan, options);
  report.store_bytes = plan::bytes_in_store(result.leaves);
  result.report = std::move(report);
  return result;
}

}  // namespace

CompiledStep compile_step(const StepGraph& step, const Options& options) {
  check_value_sizes(step.graph);
  Report report;
  Stages stages(report, options);
  Program program = StepProgram(step, options, report, stages).make();
  return finished_step(step, std::move(program), options, report, stages);
}

CompiledStep compile_chosen(const StepGraph& step, const Graph& chosen, const Options& options) {
  Report report;
  Stages stages(report, options);
  Program program = stages.run("schedule", [&] { return schedule_step(chosen, options, report); });
  return finished_step(step, std::move(program), options, report, stages);
}

CompileResult run_pipeline(const Compilation& given, const Digest& key) {
  const CompileOptions& options = given.options;
  Report report;
  const std::vector<StepGraph> steps = make_step_graphs(given, report);
  const Options lower = host_options(options);
  CompiledPlan::Data data = describe_plan(steps, options, lower);
  data.key = key;
  for (const StepGraph& step : steps) data.steps.push_back(compile_step(step, lower));
  plan::gather_leaves(data);

  Report total = plan::combined_report(data.steps);
  report.stages.insert(report.stages.end(), total.stages.begin(), total.stages.end());
  total.stages = std::move(report.stages);
  plan::add_rules(total, report.rules);
  total.store_bytes = plan::bytes_in_store(data.leaves);
  return {CompiledPlan(std::make_shared<const CompiledPlan::Data>(std::move(data))),
          std::move(total)};
}

}  // namespace pantala::compiler
