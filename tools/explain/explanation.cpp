#include "tools/explain/explanation.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/options.h"
#include "compiler/stages.h"
#include "pantala/error.h"
#include "tools/inspect/profile.h"

namespace pantala::tools {

namespace {

double expected_without(const compiler::StepGraph& step, compiler::Options options,
                        const std::string& rule) {
  options.rules_off.push_back(rule);
  const search::Outcome found = compiler::search_step(step, options);
  return found.candidates.at(found.chosen).microseconds;
}

std::vector<ExplainedRule> explained_rules(const compiler::StepGraph& step,
                                           const search::Outcome& found,
                                           const compiler::Options& options) {
  std::vector<ExplainedRule> rules;
  for (const search::RuleUse& use : found.rules) {
    // A rule that made nothing of what was chosen is worth nothing.
    const double without = use.reached > 0 ? expected_without(step, options, use.name)
                                           : found.candidates.at(found.chosen).microseconds;
    rules.push_back({use, without});
  }
  return rules;
}

std::vector<ExplainedKernel> given_kernels(const compiler::StepGraph& step,
                                           compiler::Options options) {
  options.level = search::Level::none;
  options.code = false;
  Report report;
  const Graph given = compiler::choose_graph(step, options, report);
  return explained_kernels(given, compiler::compile_chosen(step, given, options).report, options);
}

ExplainedStep explained(const compiler::StepGraph& step, const compiler::Options& options) {
  ExplainedStep result;
  result.role = step.role;
  Report report;
  result.found = compiler::Stages(report, options).run("saturate", [&] {
    return compiler::search_step(step, options);
  });
  const Graph& chosen = result.found.graph;
  const Report compiled = compiler::compile_chosen(step, chosen, options).report;
  result.stages = report.stages;
  result.stages.insert(result.stages.end(), compiled.stages.begin(), compiled.stages.end());
  result.chosen = explained_kernels(chosen, compiled, options);
  result.given = given_kernels(step, options);
  result.rules = explained_rules(step, result.found, options);
  return result;
}

// Times of a session's launches go to the kernels of the steps that have them.
void note_times(const Session& session, std::vector<ExplainedStep>& steps,
                std::vector<ExplainedKernel> ExplainedStep::* kernels) {
  for (ExplainedStep& step : steps) {
    std::vector<KernelInfo> launches = session.kernels();
    std::erase_if(launches, [&](const KernelInfo& info) { return info.plan != step.role; });
    for (ExplainedKernel& kernel : step.*kernels)
      for (const std::size_t position : kernel.positions) {
        const KernelInfo& info = launches.at(position);
        if (info.runs > 0)
          kernel.measured_us += 1000 * info.milliseconds / static_cast<double>(info.runs);
      }
  }
}

// Steps of both graphs in turns, the best time of each; then the times of their launches.
void measure_steps(const Inspected& inspected, Explanation& explanation) {
  constexpr int kTurns = 5, kTimedSteps = 5;
  Inspected plain = inspected;
  plain.options.rewrite = Rewrite::none;
  Session given = session_on_made_up_inputs(plain), chosen = session_on_made_up_inputs(inspected);
  explanation.given_ms = best_step_ms(given);
  explanation.chosen_ms = best_step_ms(chosen);
  for (int turn = 1; turn < kTurns; ++turn) {
    explanation.given_ms = std::min(explanation.given_ms, best_step_ms(given));
    explanation.chosen_ms = std::min(explanation.chosen_ms, best_step_ms(chosen));
  }
  for (Session* session : {&given, &chosen}) {
    session->set_timing(true, false);
    for (int k = 0; k < kTimedSteps; ++k) session->step();
    session->wait();
  }
  note_times(given, explanation.steps, &ExplainedStep::given);
  note_times(chosen, explanation.steps, &ExplainedStep::chosen);
}

}  // namespace

double ExplainedStep::search_ms() const {
  const auto saturate = std::ranges::find(stages, "saturate", &Report::Stage::name);
  return saturate == stages.end() ? 0 : saturate->milliseconds;
}

Explanation explain(const std::string& subject, const Inspected& inspected, bool measure) {
  const compiler::Options options = compiler::host_options(inspected.options);
  if (options.level == search::Level::none)
    throw TypeError("explain: nothing is chosen with --rewrite none or --unfused");
  Explanation explanation;
  explanation.subject = subject;
  Report report;
  for (const compiler::StepGraph& step : step_graphs(inspected, report))
    explanation.steps.push_back(explained(step, options));
  explanation.stages = std::move(report.stages);
  explanation.canonical = std::move(report.rules);
  if (measure) measure_steps(inspected, explanation);
  return explanation;
}

}  // namespace pantala::tools
