// pantala explain MODEL|FILE: which of the equal ways to compute a step was chosen, what the others
// were expected to cost, which rules made it and what each of them is worth.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/doing.h"
#include "compiler/options.h"
#include "pantala/error.h"
#include "tools/command.h"
#include "tools/inspect/profile.h"
#include "tools/inspect/subject.h"
#include "tools/inspect/table.h"
#include "tools/options.h"
#include "tools/subject_options.h"

namespace pantala::tools {

namespace {

using Json = nlohmann::ordered_json;

// A rule that fit, and what would be expected of the step without it.
struct ExplainedRule {
  Report::Rule rule;
  double without_us = 0;
};

struct ExplainedStep {
  std::string role;
  Report report;
  double milliseconds = 0;  // for the search
  std::vector<ExplainedRule> rules;
};

const Report::Candidate& given_of(const Report& report) { return report.candidates.at(0); }
const Report::Candidate& chosen_of(const Report& report) {
  return *std::ranges::find(report.candidates, true, &Report::Candidate::chosen);
}

// In milliseconds a step; 0: not measured.
struct MeasuredSteps {
  double given = 0, chosen = 0;
};

Report search_of(const compiler::StepGraph& step, compiler::Options options,
                 const std::string& without = "") {
  if (!without.empty()) options.rules_off.push_back(without);
  Report report;
  compiler::choose_graph(step, options, report);
  return report;
}

ExplainedStep explained(const compiler::StepGraph& step, const compiler::Options& options) {
  using Clock = std::chrono::steady_clock;
  ExplainedStep result;
  result.role = step.role;
  const Clock::time_point start = Clock::now();
  result.report = search_of(step, options);
  result.milliseconds = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  for (const Report::Rule& rule : result.report.rules) {
    // A rule that made nothing of what was chosen is worth nothing.
    const double without = rule.reached > 0
                               ? chosen_of(search_of(step, options, rule.name)).predicted_us
                               : chosen_of(result.report).predicted_us;
    result.rules.push_back({rule, without});
  }
  return result;
}

// Steps of both graphs in turns, the best time of each.
MeasuredSteps measured(const Inspected& inspected) {
  constexpr int kTurns = 5;
  Inspected plain = inspected;
  plain.options.rewrite = Rewrite::none;
  Session given = session_on_made_up_inputs(plain), chosen = session_on_made_up_inputs(inspected);
  MeasuredSteps best{.given = best_step_ms(given), .chosen = best_step_ms(chosen)};
  for (int turn = 1; turn < kTurns; ++turn) {
    best.given = std::min(best.given, best_step_ms(given));
    best.chosen = std::min(best.chosen, best_step_ms(chosen));
  }
  return best;
}

std::string change_text(double before, double after) {
  return before > 0 ? fmt::format("{:+.1f} %", 100 * (after / before - 1)) : "";
}

std::string summary_text(const ExplainedStep& step, const MeasuredSteps& times) {
  const Report::Candidate &a = given_of(step.report), &b = chosen_of(step.report);
  std::vector<std::vector<std::string>> rows;
  const auto add = [&](std::string name, double before, double after, int digits) {
    rows.push_back({std::move(name), fmt::format("{:.{}f}", before, digits),
                    fmt::format("{:.{}f}", after, digits), change_text(before, after)});
  };
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  add("nodes", real(a.nodes), real(b.nodes), 0);
  add("launches", real(a.launches), real(b.launches), 0);
  add("Mflop", a.flops / 1e6, b.flops / 1e6, 1);
  add("MB moved", a.bytes / 1e6, b.bytes / 1e6, 1);
  add("MB alive", real(a.peak_bytes) / 1e6, real(b.peak_bytes) / 1e6, 1);
  add("estimated ms", a.predicted_us / 1e3, b.predicted_us / 1e3, 3);
  if (times.given > 0) add("measured ms", times.given, times.chosen, 3);
  return table_text({{""}, {"given", true}, {"chosen", true}, {"", true}}, rows);
}

std::string rules_text(const ExplainedStep& step) {
  if (step.rules.empty()) return "no rule fits\n";
  const double chosen = chosen_of(step.report).predicted_us;
  std::vector<std::vector<std::string>> rows;
  for (const ExplainedRule& one : step.rules)
    rows.push_back({one.rule.name, fmt::format("{}", one.rule.matches),
                    fmt::format("{}", one.rule.count), fmt::format("{}", one.rule.reached),
                    change_text(chosen, one.without_us)});
  return table_text({{"rule"},
                     {"places", true},
                     {"said something new", true},
                     {"nodes chosen", true},
                     {"estimate without it", true}},
                    rows);
}

// What was recognised before anything was differentiated.
std::string canonical_text(const std::vector<Report::Rule>& rules) {
  std::vector<std::vector<std::string>> rows;
  for (const Report::Rule& rule : rules)
    rows.push_back({rule.name, fmt::format("{}", rule.matches), fmt::format("{}", rule.count),
                    fmt::format("{}", rule.reached)});
  return rows.empty() ? ""
                      : table_text({{"canonical form by"},
                                    {"places", true},
                                    {"said something new", true},
                                    {"nodes kept", true}},
                                   rows) +
                            "\n";
}

std::string candidates_text(const ExplainedStep& step) {
  std::vector<std::vector<std::string>> rows;
  for (const Report::Candidate& one : step.report.candidates)
    rows.push_back({one.chosen ? "*" : "", one.name, fmt::format("{:.3f}", one.predicted_us / 1e3),
                    change_text(given_of(step.report).predicted_us, one.predicted_us),
                    fmt::format("{:.1f}", static_cast<double>(one.peak_bytes) / 1e6)});
  return table_text(
      {{""}, {"candidate"}, {"estimated ms", true}, {"against given", true}, {"MB alive", true}},
      rows);
}

struct Explained {
  std::vector<Report::Rule> canonical;
  std::vector<ExplainedStep> steps;
  MeasuredSteps times;
};

std::string text_of(const Explained& explained) {
  const auto& [canonical, steps, times] = explained;
  std::string text = canonical_text(canonical);
  for (const ExplainedStep& step : steps) {
    if (steps.size() > 1) text += fmt::format("{}# {}\n", text.empty() ? "" : "\n", step.role);
    text += summary_text(step, times) + "\n" + rules_text(step) + "\n" + candidates_text(step);
    text += fmt::format("\ne-graph: {} nodes, {} classes, {} rounds, stopped: {}; {:.0f} ms\n",
                        step.report.egraph_nodes, step.report.egraph_classes,
                        step.report.egraph_rounds, step.report.stop_reason, step.milliseconds);
  }
  return text;
}

std::string json_of(const Explained& explained) {
  const auto& [canonical, steps, times] = explained;
  Json document{{"canonical", Json::array()}, {"steps", Json::array()}};
  for (const Report::Rule& rule : canonical)
    document["canonical"].push_back({{"name", rule.name},
                                     {"matches", rule.matches},
                                     {"count", rule.count},
                                     {"reached", rule.reached}});
  for (const ExplainedStep& step : steps) {
    Json one{{"role", step.role},
             {"candidates", Json::parse(step.report.json()).at("candidates")},
             {"rules", Json::array()},
             {"egraph_nodes", step.report.egraph_nodes},
             {"egraph_classes", step.report.egraph_classes},
             {"egraph_rounds", step.report.egraph_rounds},
             {"stop_reason", step.report.stop_reason},
             {"search_ms", step.milliseconds}};
    for (const ExplainedRule& rule : step.rules)
      one["rules"].push_back({{"name", rule.rule.name},
                              {"matches", rule.rule.matches},
                              {"count", rule.rule.count},
                              {"reached", rule.rule.reached},
                              {"predicted_us_without", rule.without_us}});
    document["steps"].push_back(std::move(one));
  }
  if (times.given > 0) {
    document["given_ms"] = times.given;
    document["chosen_ms"] = times.chosen;
  }
  return document.dump(2) + "\n";
}

struct ExplainOptions {
  InspectSubject subject;
  bool json = false, measure = false;
};

std::string explanation(const ExplainOptions& o) {
  const Doing doing("explaining " + o.subject.name);
  const Inspected inspected = read_subject(o.subject);
  const compiler::Options options = compiler::host_options(inspected.options);
  if (options.level == search::Level::none)
    throw TypeError("explain: nothing is chosen with --rewrite none or --unfused");
  Report report;
  Explained all;
  for (const compiler::StepGraph& step : step_graphs(inspected, &report))
    all.steps.push_back(explained(step, options));
  all.canonical = report.rules;
  if (o.measure) all.times = measured(inspected);
  return o.json ? json_of(all) : text_of(all);
}

}  // namespace

Run explain_verb(VerbOptions& verb) {
  const auto o = std::make_shared<ExplainOptions>();
  add_subject_options(verb, o->subject);
  verb.add_flag("--measure", o->measure,
                "Also run both graphs in turns on made-up inputs, and show their times");
  verb.add_flag("--json", o->json, "JSON instead of text");
  return [o] {
    fmt::print("{}", explanation(*o));
    return 0;
  };
}

}  // namespace pantala::tools
